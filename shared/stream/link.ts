import { z } from 'zod';
import { isReason, type Reason } from '../refusal.ts';
import { termList } from '../speech/terms.ts';
import { final, segment, word } from '../speech/transcript.ts';
import { streamFormat } from './format.ts';

/**
 * Messages between edge and agent about one live stream (`PROTOCOL.md`), each in a sealed record.
 * Positions are bytes of audio as the client sent them, counted from the beginning of the session; times are seconds
 * from its first sample, counted in samples and never by a clock.
 */
const position = z.number().int().nonnegative();
const seconds = z.number().nonnegative();

export const streamOptions = z.object({
  /** Send `interim` events. */
  interim: z.boolean(),
  /** Milliseconds of silence that end an utterance; `false`: only `finalize`, its greatest length, or the end does. */
  endpointingMs: z.union([z.number().int().min(10).max(10_000), z.literal(false)]),
  /** Send `utterance_end` after so long without a word. */
  utteranceEndMs: z.number().int().min(500).max(10_000).optional(),
  /** Words and phrases to raise. */
  terms: termList.optional(),
});
export type StreamOptions = z.infer<typeof streamOptions>;

/** Place where another agent can take over: everything before `position` is final and its segments were sent. */
export const checkpoint = z.object({
  position,
  /** Time of `position`. */
  time: seconds,
  /** Index of the next segment. */
  index: z.number().int().nonnegative(),
  /**
   * State from which an agent continues identically: base64, opaque, at most `CHECKPOINT_CHARACTERS`.
   */
  state: z.string(),
});
export type Checkpoint = z.infer<typeof checkpoint>;

/** Edge to agent. `open` comes first; `end` last, in the record with the final flag. */
export const linkControl = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('open'),
    v: z.literal(1),
    task: z.literal('stream'),
    model: z.string(),
    language: z.string().optional(),
    /** The agent detects the language of the first speech: `ready` has `auto`, and `language` comes later. */
    detect: z.boolean().optional(),
    /** Languages among which it is; absent: any. */
    languages: z.array(z.string()).optional(),
    format: streamFormat,
    options: streamOptions,
    /** Absent at the beginning of a session. Audio follows from its position on. */
    from: checkpoint.optional(),
  }),
  /** Transcribes the audio before `position` now; `finalized` with the same id answers, after its segments. */
  z.object({ type: z.literal('finalize'), id: z.number().int().nonnegative(), position }),
  /** Discards speech between the last segment and `position`; `cleared` answers. */
  z.object({ type: z.literal('clear'), id: z.number().int().nonnegative(), position }),
  z.object({ type: z.literal('options'), options: streamOptions }),
  z.object({ type: z.literal('end') }),
]);
export type LinkControl = z.infer<typeof linkControl>;

/** Reasons why an utterance ended. */
export const endings = ['endpoint', 'finalize', 'length', 'end'] as const;

/** Agent to edge. `ready` comes first; `final` or `refusal` last, in the record with the final flag. */
export const linkEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('ready'),
    agent: z.string(),
    model: z.string(),
    revision: z.string(),
    language: z.string(),
  }),
  z.object({ type: z.literal('keepalive') }),
  z.object({
    type: z.literal('heard'),
    /** Audio before it was taken out of the socket: the edge may send `STREAM_WINDOW_BYTES` beyond it. */
    position,
    time: seconds,
    /** Position of the newest checkpoint that the agent sends without more audio; absent without one. */
    cut: position.optional(),
  }),
  checkpoint.extend({ type: z.literal('checkpoint') }),
  /** The detected language, once and before the first segment or interim. */
  z.object({ type: z.literal('language'), language: z.string(), confidence: z.number().min(0).max(1) }),
  z.object({ type: z.literal('speech_started'), at: seconds }),
  z.object({ type: z.literal('speech_ended'), at: seconds }),
  /**
   * Current form of the utterance that will become segment `index`; later audio may change all but `stable`.
   */
  z.object({
    type: z.literal('interim'),
    index: z.number().int().nonnegative(),
    start: seconds,
    end: seconds,
    text: z.string(),
    words: z.array(word),
    /** Words, counted from the first, that no later sound can change. */
    stable: z.number().int().nonnegative(),
    /** Number of leading words that were spoken to their end; all of them when absent. */
    whole: z.number().int().nonnegative().optional(),
    confidence: z.number().min(0).max(1),
  }),
  segment.extend({ ending: z.enum(endings) }),
  z.object({ type: z.literal('utterance_end'), lastWordEnd: seconds }),
  z.object({ type: z.literal('finalized'), id: z.number().int().nonnegative() }),
  z.object({ type: z.literal('cleared'), id: z.number().int().nonnegative() }),
  /** The agent is about to stop: dial another one, and close this stream once that one is ready. */
  z.object({ type: z.literal('drain') }),
  final,
  z.object({
    type: z.literal('refusal'),
    reason: z.custom<Reason>(isReason),
    params: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
  }),
]);
export type LinkEvent = z.infer<typeof linkEvent>;
