// The mark that a log is not what it was: while it lies in storage, nothing is committed, signed or shown to witnesses in
// that zone. It is written once, by whoever finds the evidence, and taken away by a person who has looked.
import { z } from 'zod';
import { divergedName } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';

const diverged = z.object({
  v: z.literal(1),
  origin: z.string(),
  /** When it was found, ms since 1970. */
  at: z.number().int(),
  /** By its name in the policy. */
  witness: z.string(),
  why: z.string(),
  /** What the witness has: a checkpoint that the log signed, if it shows one. */
  note: z.string().optional(),
});
export type Diverged = z.infer<typeof diverged>;

export async function readDiverged(store: LogStore, zone: string): Promise<Diverged | undefined> {
  const kept = await store.read('state', divergedName(zone));
  return kept && diverged.parse(JSON.parse(new TextDecoder().decode(kept.bytes)));
}

/** The first evidence stays. */
export const markDiverged = (store: LogStore, zone: string, mark: Diverged): Promise<boolean> =>
  store.create('state', divergedName(zone), new TextEncoder().encode(JSON.stringify(mark)));
