/** A word of an event of `/v1/stream`. Times are seconds from the first sample. */
export interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
  /** 0 to 1. */
  readonly confidence: number;
}

/** A finished utterance. Each index comes once, in order, across all connections. */
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

/**
 * Interim of the utterance that will become segment `index`; later audio may change all but the first
 * `stable` words.
 */
export interface InterimEvent {
  readonly type: 'interim';
  readonly index: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly words: readonly Word[];
  readonly stable: number;
  /** Words, counted from the first, that were spoken to their end; a later one may be partial. */
  readonly whole?: number;
  readonly confidence: number;
}

export interface FinalEvent {
  readonly type: 'final';
  readonly model: string;
  readonly revision: string;
  readonly language: string;
  /** Probability of `language`, where it was detected. */
  readonly languageConfidence?: number;
  readonly durationSeconds: number;
  readonly speechSeconds: number;
  readonly segments: number;
}

export type StreamEvent =
  | SegmentEvent
  | InterimEvent
  | FinalEvent
  /** Names agent and model, once for each connection. */
  | { readonly type: 'ready'; readonly agent: string; readonly model: string; readonly revision: string }
  /** The language that was detected, before the first segment, and the model that serves it. */
  | { readonly type: 'language'; readonly language: string; readonly confidence: number; readonly model: string }
  | { readonly type: 'speech_started'; readonly at: number }
  | { readonly type: 'speech_ended'; readonly at: number }
  | { readonly type: 'utterance_end'; readonly lastWordEnd: number }
  /** The session has moved to another agent without loss. `revision`: of the model, where it is another one. */
  | { readonly type: 'moved'; readonly agent: string; readonly revision?: string }
  /** The session will end in `seconds`, at its maximum length. */
  | { readonly type: 'ending'; readonly seconds: number }
  /** From this client: the connection broke, and a new attempt begins. */
  | { readonly type: 'reconnecting'; readonly attempt: number }
  /** From this client: the session continues; audio before `position` had arrived. */
  | { readonly type: 'resumed'; readonly position: number };

/**
 * Failure of a stream or microphone. `reason` is a refusal of the edge, `connection_lost`, `address_invalid`,
 * `microphone_unavailable`, `microphone_lost` or `microphone_overflow`.
 */
export class StreamError extends Error {
  readonly reason: string;
  /** Id of the connection in the edge's records; absent when the edge sent none. */
  readonly request: string | undefined;

  constructor(reason: string, message: string, request?: string) {
    super(message);
    this.name = 'StreamError';
    this.reason = reason;
    this.request = request;
  }
}
