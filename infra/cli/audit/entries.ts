// Entries of a log with proof of inclusion: reads one bundle, hashes it and follows the path to the signed
// root.
import type { Checkpoint } from '../../../shared/audit/checkpoint.ts';
import { type Leaf, readLeaf } from '../../../shared/audit/leaf.ts';
import { proveInclusion, verifyInclusion } from '../../../shared/audit/proof.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { equalBytes, type Hash, hashLeaf, rootOf } from '../../../shared/audit/tree.ts';
import { fetchEntries, fetchHashes, Invalid, type LogReader } from './log.ts';

export interface Entry {
  readonly index: number;
  readonly leaf: Leaf | undefined;
}

export interface HashedEntry extends Entry {
  readonly hash: Hash;
  readonly bytes: Uint8Array;
}

/** Tree levels between two levels of tiles: 2^8 is the width of a tile. */
const TILE_HEIGHT = Math.log2(TILE_WIDTH);

export class ProvenEntries {
  readonly checkpoint: Checkpoint;
  readonly #reader: LogReader;
  /** Tiles shared by several bundles. */
  readonly #tiles = new Map<string, Promise<Hash[]>>();
  #last: { readonly bundle: number; readonly entries: readonly HashedEntry[] } | undefined;

  constructor(reader: LogReader, checkpoint: Checkpoint) {
    this.#reader = reader;
    this.checkpoint = checkpoint;
  }

  /** Number of bundles. */
  get bundles(): number {
    return Math.ceil(this.checkpoint.size / TILE_WIDTH);
  }

  async at(index: number): Promise<HashedEntry> {
    const entry = (await this.bundle(Math.floor(index / TILE_WIDTH)))[index % TILE_WIDTH];
    if (!entry) throw new Invalid(`entry ${index} is missing`);
    return entry;
  }

  /** Throws `Invalid` when an entry does not match the signed root. */
  async bundle(bundle: number): Promise<readonly HashedEntry[]> {
    if (this.#last?.bundle === bundle) return this.#last.entries;
    const { size } = this.checkpoint;
    const read = await fetchEntries(this.#reader, bundle, size);
    const hashes = await this.#tile(0, bundle);
    const entries = read.map((bytes, at) => {
      const [index, hash] = [bundle * TILE_WIDTH + at, hashLeaf(bytes)];
      if (!equalBytes(hash, hashes[at] as Hash)) throw new Invalid(`entry ${index} and its hash do not agree`);
      return { index, hash, bytes, leaf: readLeaf(bytes) };
    });
    // The path of one entry covers all others of its tile: one proof shows the whole bundle.
    const last = entries.at(-1) as HashedEntry;
    const proof = await proveInclusion(last.index, size, (height, at) => this.#subtree(height, at));
    if (!verifyInclusion({ index: last.index, leaf: last.hash, proof }, this.checkpoint))
      throw new Invalid(`the entries from ${bundle * TILE_WIDTH} on are not in the log of ${size}`);
    this.#last = { bundle, entries };
    return entries;
  }

  async #subtree(height: number, at: number): Promise<Hash> {
    const [level, width] = [Math.floor(height / TILE_HEIGHT), 2 ** (height % TILE_HEIGHT)];
    const from = at * width;
    const hashes = await this.#tile(level, Math.floor(from / TILE_WIDTH));
    return rootOf(hashes, from % TILE_WIDTH, (from % TILE_WIDTH) + width);
  }

  #tile(level: number, index: number): Promise<Hash[]> {
    const name = `${level}/${index}`;
    const known = this.#tiles.get(name);
    if (known) return known;
    const tile = fetchHashes(this.#reader, level, index * TILE_WIDTH, this.checkpoint.size);
    // Proofs of all bundles share only the last tile of level 0.
    if (level === 0 && index !== this.bundles - 1) this.#tiles.delete(`0/${this.#last?.bundle}`);
    this.#tiles.set(name, tile);
    return tile;
  }
}
