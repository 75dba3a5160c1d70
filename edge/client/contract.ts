// Parameters and results of `openStream`.
import type { FinalEvent, StreamEvent } from './events.ts';

/** Format of the audio that `send` takes. */
export interface StreamFormat {
  /**
   * `linear16` and `linear32` (float) are little-endian; `opus` is one raw packet per `send`; `ogg-opus`, `webm`
   * (Opus) and `aac` (ADTS) may be cut anywhere.
   */
  readonly encoding: 'linear16' | 'linear32' | 'mulaw' | 'alaw' | 'opus' | 'ogg-opus' | 'webm' | 'aac';
  /** Samples per second and channel, 8,000 to 48,000. */
  readonly rate: number;
  readonly channels: 1 | 2;
}

export interface StreamOptions {
  /** Send `interim` events. */
  readonly interim: boolean;
  /** Milliseconds of silence that end an utterance, 10 to 10,000; `false`: silence ends none. */
  readonly endpointingMs: number | false;
  /** Send `utterance_end` after so many milliseconds without a word, 500 to 10,000. */
  readonly utteranceEndMs?: number | undefined;
  /** Words and phrases to raise: at most 200, 64 characters each, 4,096 together; a boost from -10 to 10. */
  readonly terms?: { text: string; boost?: number | undefined }[] | undefined;
}

export interface OpenOptions {
  /** `wss://edge.example/v1/stream`; `https` and `http` are taken for `wss` and `ws`. */
  readonly url: string | URL;
  /** An access token, or a function that returns a fresh one for each connection. */
  readonly token: string | (() => string | Promise<string>);
  readonly model: string;
  /** BCP 47. */
  readonly language?: string;
  readonly format: StreamFormat;
  readonly options?: Partial<StreamOptions>;
  /** Requested priority class, bounded by the token's. */
  readonly class?: string;
  /** Milliseconds without a session before it gives up; 60,000 by default. */
  readonly patienceMs?: number;
  /** Replacements of the platform's WebSocket, and of clock and randomness. */
  readonly WebSocket?: SocketClass;
  readonly runtime?: ClientRuntime;
}

export interface ClientRuntime {
  readonly now: () => number;
  readonly random: () => number;
  /** Calls back after `ms`; returns a function that cancels the call. */
  readonly after: (ms: number, call: () => void) => () => void;
}

/** The used part of the WebSocket interface. */
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
   * Sends audio: samples of the format, or one Opus packet. Resolves when there is capacity for more, which
   * slows a source that awaits it to the recogniser's pace. Throws `StreamError` once the stream has failed.
   */
  send(bytes: Uint8Array): Promise<void>;
  /** Sends everything a source yields. */
  sendAll(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>;
  /** Transcribes the audio so far at once; resolves after its segments. */
  finalize(): Promise<void>;
  /** Discards the speech since the last segment. */
  clear(): Promise<void>;
  setOptions(options: Partial<StreamOptions>): void;
  /** Ends the audio; resolves with the final event. */
  end(): Promise<FinalEvent>;
  /** All events, for one reader. Ends after `final`; throws `StreamError` when the stream failed. */
  readonly events: AsyncIterable<StreamEvent>;
  /** Closes the connection at once. */
  close(): void;
}
