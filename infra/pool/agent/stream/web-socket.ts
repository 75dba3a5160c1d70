import type { Socket } from 'node:net';
import { limits } from '../../../../shared/limits.ts';
import { createFrameReader, opcodes, SHORT_MAX } from './socket-frames.ts';
import { takeOver } from './take-over.ts';

/** Who is told what the other side does. */
export interface SocketEars {
  /** Nobody else has these bytes. */
  message(data: Buffer, isBinary: boolean): void;
  pong(): void;
  /** It is gone, whoever hung up. */
  closed(): void;
}

/** A WebSocket that was accepted. */
export interface WebSocket {
  /** Before the turn ends in which it was opened, or messages are lost. */
  listen(ears: SocketEars): void;
  isOpen(): boolean;
  /** A binary message; `done` when the system has it, or it is gone. The bytes may change once the call has returned. */
  send(message: Uint8Array, done: () => void): void;
  ping(): void;
  /** Nothing more is read for now. */
  pause(): void;
  resume(): void;
  /** Says farewell, and is closed when the other side has said so, too. */
  close(code: number): void;
  terminate(): void;
  /** Bytes that the system has not taken. */
  unsent(): number;
}

const FIN = 0x80;
const nothing = new Uint8Array(0);
const HEAD_MAX = 10;
const ROOM = 16_384;

/** Where frames lie until the system has them; of all sockets, since it mostly has them at once. */
let room = Buffer.allocUnsafeSlow(ROOM);

/** The head of a frame of a server, which masks nothing; how long it is. */
function writeHead(into: Buffer, opcode: number, length: number): number {
  into[0] = FIN | opcode;
  if (length <= SHORT_MAX) {
    into[1] = length;
    return 2;
  }
  if (length < 65_536) {
    into[1] = 126;
    into.writeUInt16BE(length, 2);
    return 4;
  }
  into[1] = 127;
  into.writeUInt32BE(0, 2);
  into.writeUInt32BE(length, 6);
  return HEAD_MAX;
}

export interface Upgraded {
  readonly connection: Socket;
  /** What the other side is waiting for (`upgradeAnswer`), and what it has said without waiting. */
  readonly answer: string;
  readonly head: Buffer;
  /** Bytes of a message. */
  readonly most: number;
}

/**
 * A WebSocket (RFC 6455) on a connection that is upgraded with it, with no more than a stream needs: no extensions, no
 * sub-protocols. A library's share of a frame was several times what reading it takes.
 */
export function openWebSocket({ connection: given, answer, head, most }: Upgraded): WebSocket {
  let ears: SocketEars | undefined;
  let state: 'open' | 'closing' | 'closed' = 'open';

  function write(opcode: number, payload: Uint8Array, done?: () => void): void {
    const needed = HEAD_MAX + payload.length;
    const place = needed <= ROOM ? room : Buffer.allocUnsafeSlow(needed);
    const from = writeHead(place, opcode, payload.length);
    place.set(payload, from);
    connection.write(place.subarray(0, from + payload.length), done);
    // Not all of it was taken: the place must stay as it is.
    if (place === room && connection.writableLength > 0) room = Buffer.allocUnsafeSlow(ROOM);
  }

  function close(code: number | undefined): void {
    if (state !== 'open') return;
    state = 'closing';
    write(opcodes.close, code === undefined ? nothing : Uint8Array.of(code >> 8, code & 0xff));
    const late = setTimeout(() => connection.destroy(), limits.streamCloseMs.value);
    late.unref();
    connection.once('close', () => clearTimeout(late));
    // What is on its way is read and thrown away, as hanging up on it could take the farewell along.
    connection.resume();
  }

  const reader = createFrameReader(most, {
    message(data, isBinary) {
      if (state === 'open') ears?.message(data, isBinary);
    },
    ping(payload) {
      // Who does not read gets no answers, which nobody would count.
      if (state === 'open' && connection.writableLength < limits.streamUnsentBytes.value) write(opcodes.pong, payload);
    },
    pong: () => ears?.pong(),
    close(code) {
      close(code);
      connection.end();
    },
    broken(code) {
      close(code);
      connection.end();
    },
  });

  const early = Buffer.concat([head, given.read() ?? nothing]);
  const connection = takeOver(given, reader.push);
  connection.setTimeout(0);
  connection.setNoDelay(true);
  connection.on('end', () => connection.end());
  // What is wrong with the connection ends it, and nothing else.
  connection.on('error', () => {});
  connection.once('close', () => {
    state = 'closed';
    ears?.closed();
  });
  connection.write(answer);
  if (early.length > 0) process.nextTick(reader.push, early);

  return {
    listen(told) {
      ears = told;
    },
    isOpen: () => state === 'open',
    send: (message, done) => write(opcodes.binary, message, done),
    ping: () => write(opcodes.ping, nothing),
    pause: () => void connection.pause(),
    resume: () => void connection.resume(),
    close,
    terminate: () => void connection.destroy(),
    unsent: () => connection.writableLength,
  };
}
