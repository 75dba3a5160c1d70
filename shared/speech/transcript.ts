import { z } from 'zod';
import { isReason, type Reason } from '../refusal.ts';

/**
 * Events of an agent's answer to a transcription request, which the edge or a sealing client renders in the client's protocol. Times are seconds from the first sample, counted in samples and never by a clock.
 * Order: `ready`, then any of `keepalive`, `form`, `segment`, then exactly one `final` or `refusal`.
 * An answer that ends without one of those two was cut off.
 */
export const word = z.object({
  word: z.string(),
  start: z.number().nonnegative(),
  end: z.number().nonnegative(),
  /** Posterior of the decoder, 0 to 1. */
  confidence: z.number().min(0).max(1),
});

export const segment = z.object({
  type: z.literal('segment'),
  index: z.number().int().nonnegative(),
  start: z.number().nonnegative(),
  end: z.number().nonnegative(),
  text: z.string(),
  confidence: z.number().min(0).max(1),
  /** Mean natural-log probability per frame, at most 0. */
  logProbability: z.number().max(0),
  words: z.array(word),
  /** Number of its channel, from 0, where the request separates channels. */
  channel: z.number().int().nonnegative().optional(),
});

export const final = z.object({
  type: z.literal('final'),
  model: z.string(),
  revision: z.string(),
  language: z.string(),
  /** Probability of `language`, where it was detected. */
  languageConfidence: z.number().min(0).max(1).optional(),
  durationSeconds: z.number().nonnegative(),
  /** Number of channels that were recognised by themselves; absent where they were mixed. */
  channels: z.number().int().positive().optional(),
  /** Seconds of detected speech. */
  speechSeconds: z.number().nonnegative(),
  segments: z.number().int().nonnegative(),
});

export const answerEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), agent: z.string(), model: z.string(), revision: z.string() }),
  z.object({ type: z.literal('keepalive') }),
  /** The text parts of the caller's form, once all that precede or follow the file are known. Spelled without `[]`. */
  z.object({
    type: z.literal('form'),
    fields: z.record(z.string(), z.array(z.string())),
    /** Level at which a degraded pool serves the request (`load.degraded`); absent at full quality. */
    degraded: z.number().int().min(1).max(3).optional(),
    /** The transcript is a stored one of the same recording. */
    cached: z.literal(true).optional(),
  }),
  segment,
  final,
  z.object({
    type: z.literal('refusal'),
    reason: z.custom<Reason>(isReason),
    params: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
    /** Seconds until another try may succeed. Agents of before do not say. */
    retryAfter: z.number().positive().optional(),
  }),
]);

export type AnswerEvent = z.infer<typeof answerEvent>;
export type Segment = z.infer<typeof segment>;
export type Word = z.infer<typeof word>;
export type Final = z.infer<typeof final>;

/** A finished transcript: the segments in order and the totals. */
export interface Transcript {
  readonly segments: readonly Segment[];
  readonly final: Final;
}
