// A log of a certain size as it lies in storage: entries, and hashes of its subtrees. Read from left to right, so that one
// tile of each level is held, and no more.

import { TILE_WIDTH, type Tile, tileWith, unpackEntries, unpackHashes } from '../../../shared/audit/tile.ts';
import { type Hash, rootOf } from '../../../shared/audit/tree.ts';
import type { LogStore } from './log-store.ts';
import { readParts } from './read-tile.ts';
import { placeOf } from './subtree.ts';

export class LogFiles {
  readonly #store: Pick<LogStore, 'read'>;
  readonly #zone: string;
  readonly #year: number;
  readonly size: number;
  readonly #held = new Map<number, { readonly index: number; readonly hashes: readonly Hash[] }>();

  constructor(store: Pick<LogStore, 'read'>, zone: string, year: number, size: number) {
    this.#store = store;
    this.#zone = zone;
    this.#year = year;
    this.size = size;
  }

  get bundles(): number {
    return Math.ceil(this.size / TILE_WIDTH);
  }

  async entries(bundle: number): Promise<readonly Uint8Array[]> {
    return this.#read({ ...tileWith(0, bundle * TILE_WIDTH, this.size), level: 'entries' }, unpackEntries);
  }

  /** The root of the complete subtree of 2^height leaves that begins at leaf `at`·2^height. */
  async subtree(height: number, at: number): Promise<Hash> {
    const { tile, from, to } = placeOf(this.size, height, at);
    const known = this.#held.get(tile.level);
    const hashes = known?.index === tile.index ? known.hashes : await this.#read(tile, unpackHashes);
    this.#held.set(tile.level, { index: tile.index, hashes });
    return rootOf(hashes, from, to);
  }

  #read<T>(tile: Tile, unpack: (bytes: Uint8Array) => T[] | undefined): Promise<readonly T[]> {
    return readParts({ store: this.#store, zone: this.#zone, year: this.#year }, tile, unpack);
  }
}
