// The file of a spoken document: one line of JSON, its manifest, then a WAV file.
import { z } from 'zod';

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

const manifestSegment = z.object({
  /** Index in the document, from 0; a change names it. */
  index: z.number().int().nonnegative(),
  text: z.string(),
  /** Start and length of its sound, in samples of the file. */
  start_sample: z.number().int().nonnegative(),
  samples: z.number().int().nonnegative(),
  /** Begin and end in seconds. */
  start: z.number().nonnegative(),
  end: z.number().nonnegative(),
  /** Edition of the document that gave the segment this text; 0 for the first one. */
  edition: z.number().int().nonnegative(),
  /** Sample rate. */
  digest,
  /** Reports whether the segment has words to speak. */
  spoken: z.boolean(),
});

export const manifest = z.object({
  v: z.literal(1),
  project: z.string(),
  document: z.number().int().nonnegative(),
  edition: z.number().int().nonnegative(),
  model: z.string(),
  /** Revisions of the speaking model; several when it was replaced meanwhile. */
  revisions: z.array(z.string()),
  voice: z.string().optional(),
  rate: z.number(),
  language: z.string().optional(),
  audio: z.object({
    content_type: z.literal('audio/wav'),
    sample_rate: z.number().int(),
    bits: z.literal(16),
    channels: z.literal(1),
    samples: z.number().int().nonnegative(),
    seconds: z.number().nonnegative(),
    bytes: z.number().int().positive(),
    /** Length of the WAV file. */
    digest,
  }),
  gaps: z.object({ segment_ms: z.number().int(), block_ms: z.number().int() }),
  blocks: z.array(z.object({ index: z.number().int().nonnegative(), segments: z.array(manifestSegment).min(1) })),
  warnings: z.array(z.string()),
});
export type Manifest = z.infer<typeof manifest>;
