// A live stream to the edge, whatever its dialect.
import type { LiveAudio } from './live-audio.ts';
import type { Shown } from './live-latency.ts';

/** What a stream tells. */
export type LiveNews =
  /** The words of an utterance as they look now; `wordEnds` is empty where the dialect does not say. */
  | ({ readonly type: 'words'; readonly text: string } & Shown)
  /** `trouble`: words were lost. `notice`: another agent or connection goes on, and nothing was lost. */
  | { readonly type: 'trouble' | 'notice'; readonly code: string };

export interface LiveStream {
  /** Takes a frame; resolves when there is room for the next one, which at real-time pace is at once. */
  send(frame: Uint8Array): Promise<void>;
  /** Nothing follows: resolves when everything was said, with the code of the refusal if it was not. */
  finish(): Promise<{ readonly code: string | undefined; readonly message?: string }>;
  /** Resolves when the stream ends before it was told to. */
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
  /** Of the audio that will be sent: 16-bit, one channel. */
  readonly rate: number;
  readonly onNews: (news: LiveNews, now: number) => void;
}

/** Resolves when audio can be sent, or with the code of the refusal. Never rejects. */
export type OpenLive = (
  target: LiveTarget,
) => Promise<LiveStream | { readonly code: string; readonly message?: string }>;

export interface Dialect {
  readonly open: OpenLive;
  /** The rate that clients of this dialect use, given that of the recording. */
  rateFor(audio: LiveAudio): number;
}

export const dialectNames = ['auricle', 'deepgram', 'openai'] as const;
export type DialectName = (typeof dialectNames)[number];
