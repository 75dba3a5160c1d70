// Checkpoints that may cover an export: the published one, and the newest that witnesses have signed.
import { checkpointName, witnessedName } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';
import { headOf } from '../log/publish-checkpoint.ts';

export interface Published {
  readonly size: number;
  /** Reads the signed note with the witnesses' signatures. */
  readonly note: Uint8Array;
}

/** The witnessed one first. */
export async function readPublished(
  store: Pick<LogStore, 'read'>,
  zone: string,
  year: number,
): Promise<readonly Published[]> {
  const names = [witnessedName(zone, year), checkpointName(zone, year)];
  const stored = await Promise.all(names.map((name) => store.read('state', name)));
  return stored.flatMap((one) => (one ? [{ size: headOf(one.bytes).size, note: one.bytes }] : []));
}
