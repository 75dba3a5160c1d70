// What the dialects that speak JSON over a WebSocket share: opening, counting, and knowing how it ended.
import { WebSocket } from 'ws';
import { limits } from '../../shared/limits.ts';
import type { LiveStream, OpenLive } from './live.ts';

/** What one text message means for the stream. */
export type Step = 'begun' | 'over' | { readonly refused: string; readonly message: string | undefined } | undefined;

export interface Conversation {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Reads a message of the edge; may answer it. */
  hear(message: Record<string, unknown>, say: (message: string) => void, now: number): Step;
  /** A frame as the dialect sends it. */
  frame(frame: Uint8Array): string | Uint8Array;
  /** What ends the stream. */
  readonly end: readonly string[];
  /** The stream has begun as soon as the socket is open, without a word of the edge. */
  readonly begunWhenOpen: boolean;
}

/** Words of a refusal, with the id under which its operator finds it. */
export const told = (text: string | undefined, request: string | undefined): string | undefined =>
  [text?.replace(/\.$/, ''), request && `request ${request}`].filter(Boolean).join(', ') || undefined;

export const socketUrl = (edge: string, path: string): URL => new URL(path, edge.replace(/^http/, 'ws'));

type Opened = Awaited<ReturnType<OpenLive>>;

export function openSocket(conversation: Conversation): Promise<Opened> {
  const { promise, resolve } = Promise.withResolvers<Opened>();
  const ended = Promise.withResolvers<Awaited<ReturnType<LiveStream['finish']>>>();
  const socket = new WebSocket(conversation.url, {
    headers: conversation.headers,
    perMessageDeflate: false,
    handshakeTimeout: limits.liveOpenMs.value,
  });
  const count = { sent: 0, received: 0 };
  let over = false;
  let refused: string | undefined;
  let message: string | undefined;
  const say = (message: string | Uint8Array) =>
    new Promise<void>((done) => {
      count.sent += message.length;
      socket.send(message, () => done());
      if (socket.bufferedAmount < limits.liveBufferedBytes.value) done();
    });
  const stream: LiveStream = {
    send: (frame) => (socket.readyState === socket.OPEN ? say(conversation.frame(frame)) : Promise.resolve()),
    async finish() {
      for (const message of conversation.end) if (socket.readyState === socket.OPEN) void say(message);
      const late = setTimeout(() => {
        refused ??= 'no_end';
        socket.terminate();
      }, limits.liveFinishMs.value);
      const end = await ended.promise;
      clearTimeout(late);
      return end;
    },
    lost: ended.promise.then(({ code }) => ({ code: code ?? 'ended_early' })),
    bytes: () => ({ ...count }),
  };
  const late = setTimeout(() => {
    refused ??= 'not_begun';
    socket.terminate();
  }, limits.liveOpenMs.value);
  const begin = () => {
    clearTimeout(late);
    resolve(stream);
  };
  socket.on('open', () => conversation.begunWhenOpen && begin());
  socket.on('message', (data, isBinary) => {
    if (isBinary) return;
    const text = String(data);
    count.received += text.length;
    const step = conversation.hear(JSON.parse(text), (message) => void say(message), performance.now());
    if (step === 'begun') begin();
    else if (step === 'over') {
      over = true;
      socket.close(1000);
    } else if (step) {
      refused ??= step.refused;
      message ??= step.message;
    }
  });
  // The body of a refused handshake names the reason; the status is all that is sure.
  socket.on('unexpected-response', (request, response) => {
    refused ??= String(response.headers['dg-error'] ?? `http_${response.statusCode}`);
    message ??= told(undefined, response.headers['x-request-id']?.toString());
    request.destroy();
    socket.terminate();
  });
  socket.on('error', (error) => {
    refused ??= (error as NodeJS.ErrnoException).code ?? 'network';
    message ??= `${conversation.url.origin}: ${error.message}`;
  });
  socket.on('close', (code) => {
    clearTimeout(late);
    const said = message === undefined ? {} : { message };
    const end = { code: refused ?? (over ? undefined : `closed_${code}`), ...said };
    ended.resolve(end);
    resolve({ ...end, code: end.code ?? 'ended_early' });
  });
  return promise;
}
