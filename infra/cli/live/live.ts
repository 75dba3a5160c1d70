// A live stream to the edge.
import type { ShownWords } from './latency.ts';

/** An event of a stream. */
export type LiveUpdate =
  /** Words of an utterance so far. */
  | ({ readonly type: 'words'; readonly text: string } & ShownWords)
  /** Another agent or connection continues the stream without a loss. */
  | { readonly type: 'notice'; readonly code: string };

export interface LiveEnd {
  /** Code of the refusal; `undefined` after a normal end. */
  readonly code: string | undefined;
  readonly message?: string;
}

export interface LiveStream {
  /** Sends a frame. Resolves when the send buffer has capacity for the next one. */
  send(frame: Uint8Array): Promise<void>;
  /** Ends the audio. Resolves after the last event of the edge. */
  finish(): Promise<LiveEnd>;
  /** Resolves when the stream ends before `finish`. */
  readonly lost: Promise<{ readonly code: string }>;
  /** Bytes over the network so far, without framing. */
  bytes(): { readonly sent: number; readonly received: number };
}

export interface LiveTarget {
  /** http or https, without a path. */
  readonly edge: string;
  readonly token: string;
  readonly model: string;
  readonly language: string | undefined;
  /** Sample rate of the audio: 16-bit, one channel. */
  readonly rate: number;
  readonly onNews: (news: LiveUpdate, now: number) => void;
}
