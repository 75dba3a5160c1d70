// Tiles of a log as they are stored: full ones for ever, partial ones until they are full.
import type { ReadTile } from '../../../shared/audit/subtree.ts';
import { TILE_WIDTH, type Tile, tilePath, unpackHashes } from '../../../shared/audit/tile.ts';
import { fileName } from './log-names.ts';
import type { LogStore } from './log-store.ts';

/** Throws when a tile is not there: then the log is not as long as it was said to be. */
export const readTileOf =
  (store: LogStore, zone: string, year: number): ReadTile =>
  async (tile) => {
    const read = ({ width, ...place }: Tile) =>
      store.read(width === TILE_WIDTH ? 'log' : 'state', fileName(zone, year, tilePath({ ...place, width })));
    const kept = (await read(tile)) ?? (await read({ ...tile, width: TILE_WIDTH }));
    const hashes = kept && unpackHashes(kept.bytes);
    if (!hashes || hashes.length < tile.width) throw new Error(`${zone}/${year}: ${tilePath(tile)} is not there`);
    return hashes.slice(0, tile.width);
  };
