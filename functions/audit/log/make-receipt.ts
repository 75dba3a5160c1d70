// A receipt of an entry: under the newest checkpoint that witnesses have signed, or, if they have not seen the entry yet,
// under the newest of all.
import { proveInclusion } from '../../../shared/audit/proof.ts';
import { formatReceipt } from '../../../shared/audit/receipt.ts';
import { subtreesOf } from '../../../shared/audit/subtree.ts';
import { checkpointName, witnessedName } from './log-names.ts';
import type { LogStore } from './log-store.ts';
import { headOf } from './publish-checkpoint.ts';
import { readTileOf } from './read-tile.ts';

/** `undefined` when the log has no such entry yet. */
export async function makeReceipt(
  store: LogStore,
  zone: string,
  year: number,
  index: number,
): Promise<string | undefined> {
  for (const name of [witnessedName(zone, year), checkpointName(zone, year)]) {
    const kept = await store.read('state', name);
    const { size } = kept ? headOf(kept.bytes) : { size: 0 };
    if (!kept || index >= size) continue;
    const proof = await proveInclusion(index, size, subtreesOf(size, readTileOf(store, zone, year)));
    return formatReceipt({ index, proof, checkpoint: new TextDecoder().decode(kept.bytes) });
  }
  return undefined;
}
