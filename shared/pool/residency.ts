import { z } from 'zod';

/** Longest reason of a residency: each revision of a description carries one. */
export const RESIDENCY_CHARACTERS = 160;

/** Standing of a revision in its agent's memory, for operators. Numbers have two digits. */
export const residency = z.object({
  /** Seconds of waiting that it saves per second and GB while it is loaded. */
  score: z.number(),
  /** Requests a second that the agent predicts. */
  rate: z.number(),
  /** Seconds that a request waits less while it is loaded. */
  saves: z.number(),
  /** Memory of the loaded revision. */
  bytes: z.number().int(),
  /** Requests and streams that hold it. */
  leases: z.number().int(),
  /** Tier that it never falls below. */
  floor: z.enum(['gpu', 'ram', 'ssd', 'blob']).optional(),
  /** Reason that it is loaded, or is not. */
  why: z.string().max(RESIDENCY_CHARACTERS),
});

export type Residency = z.infer<typeof residency>;
