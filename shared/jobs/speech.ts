// Speech settings of a document, part of each of its jobs. No content.
import { z } from 'zod';
import { PROJECT_DOCUMENTS_MAX } from './limits.ts';

/** Longest silence between two segments or blocks: a longer one separates documents. */
export const PROJECT_GAP_MS = 10_000;

const gap = z.number().int().min(0).max(PROJECT_GAP_MS);

export const speech = z.object({
  /** Index of the document in its project, from 0. */
  document: z
    .number()
    .int()
    .min(0)
    .max(PROJECT_DOCUMENTS_MAX - 1),
  voice: z.string().min(1).max(64).optional(),
  /** 1 is the voice's natural rate, 2 twice as fast. */
  rate: z.number().min(0.5).max(2).optional(),
  /** Silence in milliseconds between two segments of a block, and between two blocks. */
  gaps: z.object({ segment: gap, block: gap }),
  /** The project prefers pools without accelerators, and one exists. */
  light: z.boolean(),
});

export type Speech = z.infer<typeof speech>;
