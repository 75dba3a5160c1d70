// Receipts of entries: under the newest checkpoint that witnesses have signed, or, if they have not seen the entry yet,
// under the newest of all.
import { proveInclusion } from '../../../shared/audit/proof.ts';
import { formatReceipt } from '../../../shared/audit/receipt.ts';
import { subtreesOf } from '../../../shared/audit/subtree.ts';
import { checkpointName, witnessedName } from './log-names.ts';
import type { LogStore } from './log-store.ts';
import { headOf } from './publish-checkpoint.ts';
import { readTileOf } from './read-tile.ts';

/** Receipts under one checkpoint. */
interface Under {
  readonly size: number;
  make(index: number): Promise<string>;
}

/** Each tile is read once, for as many receipts as are made. */
export function receiptsUnder(store: Pick<LogStore, 'read'>, zone: string, year: number, note: Uint8Array): Under {
  const { size } = headOf(note);
  const [read, checkpoint] = [subtreesOf(size, readTileOf(store, zone, year)), new TextDecoder().decode(note)];
  return {
    size,
    make: async (index) => formatReceipt({ index, proof: await proveInclusion(index, size, read), checkpoint }),
  };
}

/** Receipts for one answer, all under the same checkpoints: those are read once, and so is each tile. */
export class Receipts {
  readonly #store: Pick<LogStore, 'read'>;
  readonly #zone: string;
  readonly #years = new Map<number, Promise<readonly Under[]>>();

  constructor(store: Pick<LogStore, 'read'>, zone: string) {
    this.#store = store;
    this.#zone = zone;
  }

  /** `undefined` when the log has no such entry yet. */
  async of(year: number, index: number): Promise<string | undefined> {
    const known = this.#years.get(year) ?? this.#read(year);
    this.#years.set(year, known);
    return (await known).find(({ size }) => index < size)?.make(index);
  }

  async #read(year: number): Promise<readonly Under[]> {
    const [store, zone] = [this.#store, this.#zone];
    const names = [witnessedName(zone, year), checkpointName(zone, year)];
    const kept = await Promise.all(names.map((name) => store.read('state', name)));
    return kept.flatMap((one) => (one ? [receiptsUnder(store, zone, year, one.bytes)] : []));
  }
}

export const makeReceipt = (store: LogStore, zone: string, year: number, index: number): Promise<string | undefined> =>
  new Receipts(store, zone).of(year, index);
