// A log of a certain size as it lies in storage: entries, and hashes of its subtrees. Read from left to right, so that one
// tile of each level is held, and no more.
import { TILE_WIDTH, type Tile, tilePath, tileWith, unpackEntries, unpackHashes } from '../../../shared/audit/tile.ts';
import { type Hash, rootOf } from '../../../shared/audit/tree.ts';
import { fileArea, fileName } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';

/** Hashes of a tile are those of subtrees 2^8 times as high as those of the tile below. */
const LEVEL_HEIGHT = 8;

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
    const level = Math.floor(height / LEVEL_HEIGHT);
    const width = 2 ** (height % LEVEL_HEIGHT);
    const first = at * width;
    const tile = tileWith(level, first, this.size);
    const known = this.#held.get(level);
    const hashes = known?.index === tile.index ? known.hashes : await this.#read(tile, unpackHashes);
    this.#held.set(level, { index: tile.index, hashes });
    const from = first - tile.index * TILE_WIDTH;
    return rootOf(hashes, from, from + width);
  }

  /** Of one that has become full meanwhile, the beginning. */
  async #read<T>(tile: Tile, unpack: (bytes: Uint8Array) => T[] | undefined): Promise<readonly T[]> {
    const read = async (one: Tile) => {
      const area = fileArea({ partial: one.width < TILE_WIDTH });
      return (await this.#store.read(area, fileName(this.#zone, this.#year, tilePath(one))))?.bytes;
    };
    const bytes = (await read(tile)) ?? (await read({ ...tile, width: TILE_WIDTH }));
    const parts = bytes && unpack(bytes);
    if (!parts || parts.length < tile.width)
      throw new Error(`${this.#zone}/${this.#year}: ${tilePath(tile)} is missing or not whole`);
    return parts.slice(0, tile.width);
  }
}
