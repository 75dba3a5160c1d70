// Subtrees of a log, read from its tiles: what proofs are made of.
import type { ReadSubtree } from './proof.ts';
import { type Tile, tilePath, tileWith } from './tile.ts';
import { type Hash, rootOf } from './tree.ts';

/** Height of a tile: 2^8 hashes. */
const TILE_HEIGHT = 8;

/** The hashes of a tile, `width` of them at least. */
export type ReadTile = (tile: Tile) => Promise<readonly Hash[]>;

/** Each tile is read once. */
export function subtreesOf(size: number, read: ReadTile): ReadSubtree {
  const tiles = new Map<string, Promise<readonly Hash[]>>();
  return async (height, at) => {
    const level = Math.floor(height / TILE_HEIGHT);
    const count = 2 ** (height % TILE_HEIGHT);
    const tile = tileWith(level, at * count, size);
    const path = tilePath(tile);
    const reading = tiles.get(path) ?? read(tile);
    tiles.set(path, reading);
    const hashes = await reading;
    const from = (at * count) % 2 ** TILE_HEIGHT;
    if (hashes.length < from + count) throw new RangeError(`${path} has ${hashes.length} hashes`);
    return rootOf(hashes, from, from + count);
  };
}
