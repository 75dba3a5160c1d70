// Logs of a zone, as the functions report them to the edge.
//
//   GET /api/audit/log/{zone}    loggedYears, the newest first
import { z } from 'zod';

/** Four digits, as in the names of logs. */
export const logYear = z.number().int().min(1_000).max(9_999);

export const loggedYear = z.object({
  year: z.number().int(),
  /** Entries of the first checkpoint, and of the published one. */
  first: z.number().int().optional(),
  size: z.number().int(),
  /** The log has ended and is published completely. */
  closed: z.boolean(),
});
export type LoggedYear = z.infer<typeof loggedYear>;

export const loggedYears = z.object({ data: z.array(loggedYear) });
