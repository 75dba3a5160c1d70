import { z } from 'zod';
import { UPLOAD_PIECES_MAX } from '../../../../../shared/jobs/limits.ts';
import { warning } from '../../../../../shared/jobs/outcome.ts';
import { final, type Segment, segment } from '../../../../../shared/speech/transcript.ts';

// Contents of the sealed outcomes. A plan is one JSON object; a result and a transcript are lines of JSON, so
// that a reader holds one line at a time.

export const planSheet = z.object({
  v: z.literal(1),
  /** Start and length of each piece, in samples at 16 kHz. */
  pieces: z
    .array(z.object({ start: z.number().int().nonnegative(), samples: z.number().int().positive() }))
    .min(1)
    .max(UPLOAD_PIECES_MAX),
  /** Seconds of the recording, counted in samples of the file. */
  seconds: z.number().nonnegative(),
  warnings: z.array(warning).max(16),
});
export type PlanSheet = z.infer<typeof planSheet>;

/** Last line of a result: it was heard to its end. Times before it count from the start of the piece. */
const totalsLine = z.object({
  type: z.literal('heard'),
  v: z.literal(1),
  seconds: z.number().nonnegative(),
  speechSeconds: z.number().nonnegative(),
  model: z.string(),
  revision: z.string(),
  language: z.string(),
});
export type TotalsLine = z.infer<typeof totalsLine>;

/** First line of a transcript. */
const aboutLine = z.object({
  type: z.literal('about'),
  v: z.literal(1),
  /** Start of each piece, in seconds: no word crosses these. */
  pieces: z.array(z.number().nonnegative()),
  warnings: z.array(warning).max(16),
});
export type AboutLine = z.infer<typeof aboutLine>;

export const resultLine = z.discriminatedUnion('type', [segment, totalsLine]);
export const transcriptLine = z.discriminatedUnion('type', [aboutLine, segment, final]);
const round = (seconds: number) => Math.round(seconds * 1_000) / 1_000;

/** Moves a segment of a piece into the whole recording: `offset` seconds later, with another number. */
export function moveSegment(given: Segment, offset: number, index: number): Segment {
  const at = (seconds: number) => round(seconds + offset);
  return {
    ...given,
    index,
    start: at(given.start),
    end: at(given.end),
    words: given.words.map((word) => ({ ...word, start: at(word.start), end: at(word.end) })),
  };
}
