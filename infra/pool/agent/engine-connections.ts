import net from 'node:net';
import type { Body } from '../../../shared/kserve/body.ts';
import { limits } from '../../../shared/limits.ts';
import { type Answer, type AnswerReader, createAnswerReader } from './engine-answer.ts';

export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: Body;
  readonly signal: AbortSignal;
}

/** A call and who waits for its answer. */
interface Asked {
  readonly call: Call;
  answer(answer: Answer): void;
  fail(error: Error): void;
}

/** One connection; `answering` while it has a call. */
interface Line {
  readonly socket: net.Socket;
  answering: { readonly asked: Asked; readonly reader: AnswerReader } | undefined;
  /** Where requests lie until they are sent. */
  room: Buffer;
  /** Since when it has had nothing to do, and for how long the engine keeps it then. */
  restedAt: number;
  keptMs: number;
}

const aborted = () => Object.assign(new Error('aborted'), { code: 'ABORT_ERR' });
const lost = () => Object.assign(new Error('connection closed'), { code: 'ECONNRESET' });

const READ_BYTES = 65_536;

/** One for all connections: what is read from it is copied before the next one is read. */
const readRoom = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * Connections to one HTTP server that are kept for the next call; each has one call at a time. They last as long as a
 * caller waits, so only `signal` bounds a call. Aborting drops its connection. Nothing but what an engine needs of HTTP,
 * since a live stream asks three times a second.
 */
export function openConnections(url: string, connections: number) {
  const { hostname, port, pathname, host } = new URL(url);
  const prefix = pathname.replace(/\/$/, '');
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80) };
  const most = connections + 4;
  const lines = new Set<Line>();
  const resting: Line[] = [];
  const waiting = new Set<Asked>();

  function drop(line: Line, error: Error) {
    if (!lines.delete(line)) return;
    const at = resting.indexOf(line);
    if (at >= 0) resting.splice(at, 1);
    const { answering } = line;
    line.answering = undefined;
    line.socket.destroy();
    answering?.asked.fail(error);
    next();
  }

  function hear(line: Line, length: number) {
    const { answering } = line;
    // An engine that talks unasked says that it is about to leave.
    if (!answering) return drop(line, lost());
    try {
      const answer = answering.reader.push(readRoom.subarray(0, length));
      if (answer) settle(line, answering.asked, answer);
    } catch (error) {
      drop(line, error as Error);
    }
  }

  function settle(line: Line, asked: Asked, answer: Answer) {
    line.answering = undefined;
    const { connection = '', 'keep-alive': hint = '' } = answer.headers;
    const seconds = /timeout=(\d+)/i.exec(hint)?.[1];
    line.restedAt = performance.now();
    const keptMs = seconds === undefined ? limits.engineRestMs.value : Number(seconds) * 1_000;
    line.keptMs = keptMs - limits.engineRestMarginMs.value;
    // One that answered before it had read everything is not asked again.
    if (/close/i.test(connection) || line.socket.writableLength > 0) drop(line, lost());
    else resting.push(line);
    asked.answer(answer);
    next();
  }

  function end(line: Line) {
    const { answering } = line;
    const answer = answering?.reader.end();
    if (!answering || !answer) return drop(line, lost());
    line.answering = undefined;
    drop(line, lost());
    answering.asked.answer(answer);
  }

  function connect(): Line {
    const socket = net.connect({
      ...place,
      noDelay: true,
      onread: {
        buffer: readRoom,
        callback(length) {
          hear(line, length);
          return true;
        },
      },
    });
    const line: Line = { socket, answering: undefined, room: Buffer.alloc(0), restedAt: 0, keptMs: 0 };
    lines.add(line);
    let failed: Error | undefined;
    socket.on('error', (error) => {
      failed = error;
    });
    socket.on('end', () => end(line));
    socket.on('close', () => drop(line, failed ?? lost()));
    // Nothing is read from it, but its end is.
    socket.resume();
    return line;
  }

  function headOf({ method, path, body }: Call): string {
    let head = `${method} ${prefix}${path} HTTP/1.1\r\nhost: ${host}\r\n`;
    if (!body) return `${head}\r\n`;
    for (const name in body.headers) {
      if (name !== 'content-length') head += `${name}: ${body.headers[name]}\r\n`;
    }
    return `${head}content-length: ${body.byteLength}\r\n\r\n`;
  }

  function send(line: Line, { call }: Asked) {
    const { socket } = line;
    const head = headOf(call);
    const { byteLength, chunks } = call.body ?? { byteLength: 0, chunks: [] };
    if (byteLength > limits.engineWholeBytes.value) {
      socket.cork();
      socket.write(head, 'latin1');
      for (const chunk of chunks) socket.write(chunk);
      socket.uncork();
      return;
    }
    const length = head.length + byteLength;
    if (line.room.length < length) line.room = Buffer.allocUnsafeSlow(length);
    let at = line.room.write(head, 0, 'latin1');
    for (const chunk of chunks) {
      line.room.set(chunk, at);
      at += chunk.length;
    }
    socket.write(line.room.subarray(0, at));
  }

  /** A connection that the engine has not given up yet, or a new one; `undefined` when there are too many. */
  function free(): Line | undefined {
    for (let line = resting.pop(); line; line = resting.pop()) {
      if (performance.now() - line.restedAt < line.keptMs && line.socket.writable) return line;
      lines.delete(line);
      line.socket.destroy();
    }
    return lines.size < most ? connect() : undefined;
  }

  function next() {
    for (const asked of waiting) {
      const line = free();
      if (!line) return;
      waiting.delete(asked);
      begin(line, asked);
    }
  }

  function begin(line: Line, asked: Asked) {
    line.answering = { asked, reader: createAnswerReader() };
    send(line, asked);
  }

  /** Gives the call up, wherever it is. */
  function cancel(asked: Asked) {
    if (waiting.delete(asked)) return asked.fail(aborted());
    for (const line of lines) if (line.answering?.asked === asked) return drop(line, aborted());
  }

  /** Rejects only when there is no answer. The bytes of a body must not change until then. */
  function call(made: Call): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (made.signal.aborted) return reject(aborted());
      const onAbort = () => cancel(asked);
      const asked: Asked = {
        call: made,
        answer(answer) {
          made.signal.removeEventListener('abort', onAbort);
          resolve(answer);
        },
        fail(error) {
          made.signal.removeEventListener('abort', onAbort);
          reject(error);
        },
      };
      made.signal.addEventListener('abort', onAbort, { once: true });
      const line = waiting.size === 0 ? free() : undefined;
      if (line) begin(line, asked);
      else waiting.add(asked);
    });
  }

  return {
    call,
    close() {
      for (const asked of [...waiting]) cancel(asked);
      for (const line of [...lines]) drop(line, lost());
    },
  };
}
