// An unproven claim of a witness that the log had more entries. It stops nothing; health reports it from
// storage, from any process.
import { z } from 'zod';
import { doubtedName } from './log-names.ts';
import type { LogStore } from './log-store.ts';

/** Deliveries that one health report reads for their age. */
export const HEALTH_INTAKE_MAX = 32;

const doubted = z.object({
  v: z.literal(1),
  /** Time of the first claim, ms since 1970. */
  at: z.number().int(),
  /** Name of the witness in the policy. */
  witness: z.string(),
  why: z.string(),
});
type Doubted = z.infer<typeof doubted>;

/** Stores the first claim only. */
export const storeDoubt = (store: LogStore, zone: string, doubt: Doubted): Promise<boolean> =>
  store.create('state', doubtedName(zone, doubt.witness), new TextEncoder().encode(JSON.stringify(doubt)));

/** The witness has signed since. */
export const dropDoubt = (store: LogStore, zone: string, witness: string): Promise<void> =>
  store.remove('state', doubtedName(zone, witness));

export async function readDoubts(store: LogStore, zone: string): Promise<Doubted[]> {
  const names = await store.list('state', doubtedName(zone, ''), HEALTH_INTAKE_MAX);
  const stored = await Promise.all(names.map((name) => store.read('state', name)));
  return stored.flatMap((one) => (one ? [doubted.parse(JSON.parse(new TextDecoder().decode(one.bytes)))] : []));
}
