// The published checkpoint of a log.
import { checkpointName } from '../log-names.ts';
import type { LogStore } from '../log-store.ts';
import { headOf } from '../publish-checkpoint.ts';

export interface Published {
  readonly size: number;
  /** As it was signed, with the witnesses' signatures that there are. */
  readonly note: Uint8Array;
}

/** `undefined` before the first. */
export async function readBest(
  store: Pick<LogStore, 'read'>,
  zone: string,
  year: number,
): Promise<Published | undefined> {
  const kept = await store.read('state', checkpointName(zone, year));
  return kept && { size: headOf(kept.bytes).size, note: kept.bytes };
}
