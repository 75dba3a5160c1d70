// Client of `/v1/listen` that behaves like unmodified ones: it discards audio once sent.
import { WebSocket } from 'ws';
import type { Shared } from '../../stack/running.ts';

export interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
  readonly confidence: number;
}

/** A message of the edge; members that only some have are optional. */
export interface Message {
  readonly type: string;
  readonly is_final?: boolean;
  readonly from_finalize?: boolean;
  readonly start?: number;
  readonly duration?: number;
  readonly bytes?: number;
  readonly code?: string;
  readonly channel?: {
    readonly alternatives: readonly [{ readonly transcript: string; readonly words: readonly Word[] }];
  };
}

/** Comparable result of a client: text and times. */
export type Line = readonly [
  text: string,
  start: number,
  end: number,
  words: readonly (readonly [string, number, number])[],
];

export interface Listener {
  /** All received messages, in order. */
  readonly heard: readonly Message[];
  /** Sends frames of a tenth of a second, without waiting. */
  send(audio: Uint8Array): void;
  say(type: 'KeepAlive' | 'Finalize' | 'CloseStream'): void;
  /** Reports whether the client has ended its audio. */
  ending(): boolean;
  /** Returns the first matching message, past or future. Rejects when the socket closes first. */
  until(found: (message: Message) => boolean): Promise<Message>;
  /** Breaks the connection silently, like a phone that loses its network. */
  drop(): void;
  /** Closes the socket in order, without ending the stream. */
  hangUp(): void;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** Final results with words, in order. */
  lines(): Line[];
}

export interface Wish {
  /** Value of `x-deepgram-session-id`. */
  readonly session?: string;
  readonly token?: string;
  /** Parameters that add to or replace the usual ones. */
  readonly params?: Readonly<Record<string, string>>;
  /** Local address of the connection. */
  readonly from?: string;
  /** The audio is in a container, which names its format. */
  readonly container?: true;
  /** Bytes of a message. */
  readonly frameBytes?: number;
}

const USUAL = { model: 'reference-en', interim_results: 'true' };
const FORMAT = { encoding: 'linear16', sample_rate: '16000' };

export function listen({ stack }: Pick<Shared, 'stack'>, wish: Wish = {}): Promise<Listener> {
  const url = new URL('/v1/listen', stack.url.replace('http', 'ws'));
  url.search = String(new URLSearchParams({ ...USUAL, ...(!wish.container && FORMAT), ...wish.params }));
  const socket = new WebSocket(url, {
    headers: {
      authorization: `Token ${wish.token ?? stack.token}`,
      ...(wish.session !== undefined && { 'x-deepgram-session-id': wish.session }),
    },
    perMessageDeflate: false,
    ...(wish.from !== undefined && { localAddress: wish.from }),
  });
  const heard: Message[] = [];
  const waiting = new Set<{
    found: (message: Message) => boolean;
    resolve: (message: Message) => void;
    reject: (why: Error) => void;
  }>();
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as Message;
    heard.push(message);
    for (const one of waiting) {
      if (!one.found(message)) continue;
      waiting.delete(one);
      one.resolve(message);
    }
  });
  socket.on('close', (code, reason) => {
    for (const { reject } of waiting) reject(new Error(`closed with ${code} ${reason} before it was heard`));
    closed.resolve({ code, reason: String(reason) });
  });
  let ending = false;
  const listener: Listener = {
    heard,
    send(audio) {
      const length = wish.frameBytes ?? 3_200;
      for (let at = 0; at < audio.length; at += length) socket.send(audio.subarray(at, at + length));
    },
    say(type) {
      ending ||= type === 'CloseStream';
      socket.send(JSON.stringify({ type }));
    },
    ending: () => ending,
    until(found) {
      const known = heard.find(found);
      if (known) return Promise.resolve(known);
      return new Promise((resolve, reject) => {
        if (socket.readyState === socket.CLOSED) reject(new Error('closed already'));
        waiting.add({ found, resolve, reject });
      });
    },
    drop: () => socket.terminate(),
    hangUp: () => socket.close(1000),
    closed: closed.promise,
    lines: () => heard.flatMap(toLine),
  };
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve(listener));
    socket.on('unexpected-response', (_, response) => reject(new Error(`refused: ${response.statusCode}`)));
    socket.on('error', reject);
  });
}

function toLine({ type, is_final: final, start = 0, duration = 0, channel }: Message): Line[] {
  const [best] = channel?.alternatives ?? [];
  if (type !== 'Results' || !final || !best || best.transcript === '') return [];
  const words = best.words.map(({ word, start, end }) => [word, start, end] as const);
  return [[best.transcript, start, Math.round((start + duration) * 1_000) / 1_000, words]];
}

/** Matches an interim result with a word after `seconds`. */
export const saysAfter =
  (seconds: number) =>
  ({ channel }: Message): boolean =>
    channel?.alternatives[0].words.some(({ start }) => start >= seconds) ?? false;

/** Ends the audio and returns all lines up to the last message. */
export async function finish(listener: Listener): Promise<Line[]> {
  if (!listener.ending()) listener.say('CloseStream');
  const { code } = await listener.closed;
  // Clients of Deepgram come back after any other code, so a refusal closes with 1000 as well.
  if (code !== 1000 || listener.heard.at(-1)?.type !== 'Metadata')
    throw new Error(`closed with ${code}: ${JSON.stringify(listener.heard.at(-1))}`);
  return listener.lines();
}
