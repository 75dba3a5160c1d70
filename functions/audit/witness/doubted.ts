// What a witness says of a log and nobody has signed: more entries than there are. It stops nothing, and lies in storage so
// that whoever asks how the log is doing hears of it, whichever process is asked.
import { z } from 'zod';
import { limits } from '../../../shared/limits.ts';
import { doubtedName } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';

const doubted = z.object({
  v: z.literal(1),
  /** When it was said first, ms since 1970. */
  at: z.number().int(),
  /** By its name in the policy. */
  witness: z.string(),
  why: z.string(),
});
type Doubted = z.infer<typeof doubted>;

/** What was said first stays. */
export const keepDoubt = (store: LogStore, zone: string, doubt: Doubted): Promise<boolean> =>
  store.create('state', doubtedName(zone, doubt.witness), new TextEncoder().encode(JSON.stringify(doubt)));

/** The witness has signed since. */
export const dropDoubt = (store: LogStore, zone: string, witness: string): Promise<void> =>
  store.remove('state', doubtedName(zone, witness));

export async function readDoubts(store: LogStore, zone: string): Promise<Doubted[]> {
  const names = await store.list('state', doubtedName(zone, ''), limits.auditHealthIntake.value);
  const kept = await Promise.all(names.map((name) => store.read('state', name)));
  return kept.flatMap((one) => (one ? [doubted.parse(JSON.parse(new TextDecoder().decode(one.bytes)))] : []));
}
