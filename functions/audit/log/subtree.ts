// Subtrees of a log, read from its tiles, as input of proofs.
import type { ReadSubtree } from '../../../shared/audit/proof.ts';
import { TILE_WIDTH, type Tile, type TreeTile, tilePath, tileWith } from '../../../shared/audit/tile.ts';
import { type Hash, rootOf } from '../../../shared/audit/tree.ts';

/** Height of a tile: 2^8 hashes. */
const TILE_HEIGHT = 8;

/** Returns at least `width` hashes of a tile. */
export type ReadTile = (tile: Tile) => Promise<readonly Hash[]>;

/**
 * Returns the tile and its range of hashes under the root of the subtree of 2^height leaves at leaf
 * `at`·2^height.
 */
export function placeOf(size: number, height: number, at: number): { tile: TreeTile; from: number; to: number } {
  const level = Math.floor(height / TILE_HEIGHT);
  const count = 2 ** (height % TILE_HEIGHT);
  const tile = tileWith(level, at * count, size);
  const from = at * count - tile.index * TILE_WIDTH;
  return { tile, from, to: from + count };
}

/** Reads each tile once. */
export function subtreesOf(size: number, read: ReadTile): ReadSubtree {
  const tiles = new Map<string, Promise<readonly Hash[]>>();
  return async (height, at) => {
    const { tile, from, to } = placeOf(size, height, at);
    const path = tilePath(tile);
    const reading = tiles.get(path) ?? read(tile);
    tiles.set(path, reading);
    const hashes = await reading;
    if (hashes.length < to) throw new RangeError(`${path} has ${hashes.length} hashes`);
    return rootOf(hashes, from, to);
  };
}
