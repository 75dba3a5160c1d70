// Receipts of entries: under the newest checkpoint that witnesses have signed or, for entries after it, under the newest
// of all.
import { proveInclusion } from '../../../shared/audit/proof.ts';
import { formatReceipt } from '../../../shared/audit/receipt.ts';
import { checkpointName, witnessedName } from './log-names.ts';
import type { LogStore } from './log-store.ts';
import { headOf } from './publish-checkpoint.ts';
import { readTileOf } from './read-tile.ts';
import { subtreesOf } from './subtree.ts';

/** Receipts under one checkpoint. */
interface Under {
  readonly size: number;
  make(index: number): Promise<string>;
}

/** Makes receipts under one checkpoint; each tile is read once. */
export function receiptsUnder(store: Pick<LogStore, 'read'>, zone: string, year: number, note: Uint8Array): Under {
  const { size } = headOf(note);
  const [read, checkpoint] = [subtreesOf(size, readTileOf(store, zone, year)), new TextDecoder().decode(note)];
  return {
    size,
    make: async (index) => formatReceipt({ index, proof: await proveInclusion(index, size, read), checkpoint }),
  };
}

/** Returns the receipt of an entry; `undefined` when the log has no such entry yet. */
export async function makeReceipt(
  store: Pick<LogStore, 'read'>,
  zone: string,
  year: number,
  index: number,
): Promise<string | undefined> {
  for (const name of [witnessedName(zone, year), checkpointName(zone, year)]) {
    const stored = await store.read('state', name);
    const under = stored && receiptsUnder(store, zone, year, stored.bytes);
    if (under && index < under.size) return under.make(index);
  }
  return undefined;
}
