// The right edge of a log, loaded from its tiles.

import { partialTiles, tilePath, unpackEntries, unpackHashes } from '../../../shared/audit/tile.ts';
import { equalBytes, type Hash, hashLeaf } from '../../../shared/audit/tree.ts';
import { fileName } from '../log/log-names.ts';
import type { LogPlace } from '../log/publish-checkpoint.ts';
import { type EdgeFacts, RightEdge } from '../log/right-edge.ts';

/**
 * Loads the right edge; `undefined` when a tile is missing, after a concurrent commit or a loss. Throws when
 * the tiles do not lead to `root` or the entries to the tiles: then signing stops until an operator looks.
 */
export async function loadEdge(
  { store, zone, year }: LogPlace,
  size: number,
  root: Hash,
): Promise<RightEdge | undefined> {
  const levels: Hash[][] = [];
  let bundle: EdgeFacts['bundle'] = [];
  const tiles = partialTiles(size);
  const read = await Promise.all(tiles.map((tile) => store.read('state', fileName(zone, year, tilePath(tile)))));
  for (const [at, { level, width }] of tiles.entries()) {
    const bytes = read[at]?.bytes;
    if (!bytes) return undefined;
    const parts = level === 'entries' ? unpackEntries(bytes) : unpackHashes(bytes);
    if (parts?.length !== width) throw new Error(`${zone}/${year} of ${size}: a tile of another width`);
    if (level === 'entries') bundle = parts;
    else levels[level] = parts;
  }
  for (let level = 0; level < levels.length; level += 1) levels[level] ??= [];
  const hashed = bundle.map(hashLeaf);
  const same = hashed.every((hash, at) => equalBytes(hash, levels[0]?.[at] as Hash));
  const edge = new RightEdge({ size, levels, bundle });
  if (!same || !equalBytes(edge.root(), root))
    throw new Error(`${zone}/${year} of ${size}: the tiles have another root`);
  return edge;
}
