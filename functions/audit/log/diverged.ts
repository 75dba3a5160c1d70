// The mark of a diverged log: while it is stored, nothing is committed, signed or shown to witnesses in that
// zone. The finder of the evidence writes it once; an operator removes it.
import { z } from 'zod';
import { divergedName } from './log-names.ts';
import type { LogStore } from './log-store.ts';

const diverged = z.object({
  v: z.literal(1),
  origin: z.string(),
  /** Time of the finding, ms since 1970. */
  at: z.number().int(),
  /** Name of the witness in the policy. */
  witness: z.string(),
  why: z.string(),
  /** The checkpoint that the witness shows, signed by the log. */
  note: z.string().optional(),
});
export type Diverged = z.infer<typeof diverged>;

export async function readDiverged(store: LogStore, zone: string): Promise<Diverged | undefined> {
  const stored = await store.read('state', divergedName(zone));
  return stored && diverged.parse(JSON.parse(new TextDecoder().decode(stored.bytes)));
}

/** The first evidence stays. */
export const markDiverged = (store: LogStore, zone: string, mark: Diverged): Promise<boolean> =>
  store.create('state', divergedName(zone), new TextEncoder().encode(JSON.stringify(mark)));
