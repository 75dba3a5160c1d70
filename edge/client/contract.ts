// What an app gives to `openStream`, and what it gets.
import type { StreamFormat } from '../../shared/stream/format.ts';
import type { StreamOptions } from '../../shared/stream/link.ts';
import type { FinalEvent, StreamEvent } from './events.ts';

export interface OpenOptions {
  /** `wss://edge.example/v1/stream`; `https` and `http` are taken for `wss` and `ws`. */
  readonly url: string | URL;
  /** An access token, or what gives a fresh one: it is asked for each connection. */
  readonly token: string | (() => string | Promise<string>);
  readonly model: string;
  /** BCP 47. */
  readonly language?: string;
  readonly format: StreamFormat;
  readonly options?: Partial<StreamOptions>;
  /** Class of urgency to ask for; the token's ceiling holds. */
  readonly class?: string;
  /** Milliseconds without a session after which it gives up; 60,000 unless told. */
  readonly patienceMs?: number;
  /** Stands in for the platform's WebSocket, clock and chance. */
  readonly WebSocket?: SocketClass;
  readonly surroundings?: ClientSurroundings;
}

export interface ClientSurroundings {
  readonly now: () => number;
  readonly random: () => number;
  /** Calls back after `ms`; gives what takes the call back. */
  readonly after: (ms: number, call: () => void) => () => void;
}

/** What is used of a WebSocket, a browser's or another's. */
export interface ClientSocket {
  binaryType: string;
  readonly readyState: number;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: ((event: unknown) => void) | null;
  send(message: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
}
export type SocketClass = new (url: string, protocols: string[]) => ClientSocket;

export interface LiveStream {
  /**
   * Takes audio: samples of the format, or one Opus packet. Resolves when there is room for more, so a source that
   * awaits it is never faster than the recogniser for long. Throws `StreamError` once the stream has failed.
   */
  send(bytes: Uint8Array): Promise<void>;
  /** Sends everything a source yields. */
  sendAll(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
  /** What was said so far is transcribed now; resolves after its segments. */
  finalize(): Promise<void>;
  /** What was said since the last segment is forgotten. */
  clear(): Promise<void>;
  setOptions(options: Partial<StreamOptions>): void;
  /** No more audio: resolves when everything was said. */
  end(): Promise<FinalEvent>;
  /** Everything that is told, for one reader. Ends after `final`; throws `StreamError` when the stream failed. */
  readonly events: AsyncIterable<StreamEvent>;
  /** Hangs up without waiting for anything. */
  close(): void;
}
