// Tiles of a log as they are stored: full ones for ever, partial ones until they are full.

import { TILE_WIDTH, type Tile, tilePath, unpackHashes } from '../../../shared/audit/tile.ts';
import { fileArea, fileName } from './log-names.ts';
import type { LogStore } from './log-store.ts';
import type { LogPlace } from './publish-checkpoint.ts';
import type { ReadTile } from './subtree.ts';

export const readTileOf =
  (store: Pick<LogStore, 'read'>, zone: string, year: number): ReadTile =>
  (tile) =>
    readParts({ store, zone, year }, tile, unpackHashes);

/**
 * Reads a tile; of a full one that is requested as partial, its beginning. Throws when it is missing: then
 * the log is shorter than stated.
 */
export async function readParts<T>(
  { store, zone, year }: LogPlace<Pick<LogStore, 'read'>>,
  tile: Tile,
  unpack: (bytes: Uint8Array) => T[] | undefined,
): Promise<readonly T[]> {
  const read = (one: Tile) =>
    store.read(fileArea({ partial: one.width < TILE_WIDTH }), fileName(zone, year, tilePath(one)));
  const stored = (await read(tile)) ?? (await read({ ...tile, width: TILE_WIDTH }));
  const parts = stored && unpack(stored.bytes);
  if (!parts || parts.length < tile.width)
    throw new Error(`${zone}/${year}: ${tilePath(tile)} is missing or not whole`);
  return parts.slice(0, tile.width);
}
