/** What `/v1/stream` tells its client. Times are seconds from the first sample. */
export interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
  /** 0 to 1. */
  readonly confidence: number;
}

/** A finished utterance. Each index comes once, in order, whatever happened to connections meanwhile. */
export interface SegmentEvent {
  readonly type: 'segment';
  readonly index: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly confidence: number;
  readonly logProbability: number;
  readonly words: readonly Word[];
  readonly ending: 'endpoint' | 'finalize' | 'length' | 'end';
}

/** The utterance that will become segment `index`; later sound may change all but the first `stable` words. */
export interface InterimEvent {
  readonly type: 'interim';
  readonly index: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly words: readonly Word[];
  readonly stable: number;
  /** Words, counted from the first, that were spoken to their end: behind them may be half a word. */
  readonly whole?: number;
  readonly confidence: number;
}

export interface FinalEvent {
  readonly type: 'final';
  readonly model: string;
  readonly revision: string;
  readonly language: string;
  readonly durationSeconds: number;
  readonly speechSeconds: number;
  readonly segments: number;
}

export type StreamEvent =
  | SegmentEvent
  | InterimEvent
  | FinalEvent
  /** Once for each connection: which model hears. */
  | { readonly type: 'ready'; readonly agent: string; readonly model: string; readonly revision: string }
  | { readonly type: 'speech_started'; readonly at: number }
  | { readonly type: 'speech_ended'; readonly at: number }
  | { readonly type: 'utterance_end'; readonly lastWordEnd: number }
  /** Another agent goes on; nothing is missing. */
  | { readonly type: 'moved'; readonly agent: string }
  /** The session will end in so many seconds, since it is as long as it may be. */
  | { readonly type: 'ending'; readonly seconds: number }
  /** This client: the connection broke, and is being made again. */
  | { readonly type: 'reconnecting'; readonly attempt: number }
  /** This client: it goes on; audio before `position` had arrived. */
  | { readonly type: 'resumed'; readonly position: number };

/** Why a stream ended that was not ended by its client. `reason` is a refusal of the edge, `connection_lost` or `address_invalid`. */
export class StreamError extends Error {
  readonly reason: string;
  /** Names the connection in the edge's records; absent when the edge said nothing. */
  readonly request: string | undefined;

  constructor(reason: string, message: string, request?: string) {
    super(message);
    this.name = 'StreamError';
    this.reason = reason;
    this.request = request;
  }
}
