// Rebuilds the right edge of a log without its partial tiles, from locked records and full tiles. The result
// has the expected root, or an error is thrown.
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import { partialTiles, TILE_WIDTH, tilePath, unpackHashes } from '../../../shared/audit/tile.ts';
import { equalBytes, type Hash, hashLeaf, rootOf } from '../../../shared/audit/tree.ts';
import { fileArea, fileName, recordName, signedName } from '../log/log-names.ts';
import type { LogStore } from '../log/log-store.ts';
import { headOf, type LogPlace } from '../log/publish-checkpoint.ts';
import { RightEdge } from '../log/right-edge.ts';
import { unpackRecord } from './write-record.ts';

type ReadPlace = LogPlace<Pick<LogStore, 'read'>>;

/** Rebuilds the right edge from the records of the commits. */
export async function remakeEdge(place: ReadPlace, size: number, root: Hash): Promise<RightEdge> {
  const bundle = await lastEntries(place, size, root);
  const levels: Hash[][] = [];
  for (const { level, index, width } of partialTiles(size)) {
    if (level === 'entries') continue;
    levels[level] = level === 0 ? bundle.map(hashLeaf) : await rootsOf(place, { level: level - 1, index, width });
  }
  for (let level = 0; level < levels.length; level += 1) levels[level] ??= [];
  const edge = new RightEdge({ size, levels, bundle });
  if (!equalBytes(edge.root(), root))
    throw new Error(`${place.zone}/${place.year} of ${size}: the records have another root`);
  return edge;
}

/** Writes the partial tiles of a log again; those that are there stay. */
export async function putPartials(store: LogStore, zone: string, year: number, edge: RightEdge): Promise<void> {
  const partial = edge.files().filter((file) => file.partial);
  await Promise.all(partial.map((file) => store.create(fileArea(file), fileName(zone, year, file.path), file.bytes)));
}

/** Reads the entries of the last bundle from its records, newest first. The checkpoint of a size names its record. */
async function lastEntries(place: ReadPlace, size: number, root: Hash): Promise<Uint8Array[]> {
  const { store, zone, year } = place;
  const start = size - (size % TILE_WIDTH);
  const found: Uint8Array[][] = [];
  let [at, rootAt] = [size, root];
  while (at > start) {
    const stored = await store.read('log', recordName(zone, year, at, rootAt));
    if (!stored) throw new Error(`${zone}/${year} of ${at}: the record ${toBase64Url(rootAt)} is not there`);
    const { from, entries } = unpackRecord(stored.bytes);
    if (from >= at || from + entries.length !== at) throw new Error(`${zone}/${year} of ${at}: not the record of it`);
    found.unshift(entries);
    at = from;
    if (at > start) rootAt = await rootAtSize(place, at);
  }
  return found.flat().slice(start - at);
}

async function rootAtSize({ store, zone, year }: ReadPlace, size: number): Promise<Hash> {
  const stored = await store.read('log', signedName(zone, year, size));
  if (!stored) throw new Error(`${zone}/${year}: the checkpoint of ${size} is not there`);
  return headOf(stored.bytes).root;
}

/** Roots of full tiles of a level: the hashes of the partial tile above them. */
async function rootsOf(
  { store, zone, year }: ReadPlace,
  { level, index, width }: { readonly level: number; readonly index: number; readonly width: number },
): Promise<Hash[]> {
  const first = index * TILE_WIDTH;
  return Promise.all(
    Array.from({ length: width }, async (_, at) => {
      const path = tilePath({ level, index: first + at, width: TILE_WIDTH });
      const stored = await store.read('log', fileName(zone, year, path));
      const hashes = stored && unpackHashes(stored.bytes);
      if (hashes?.length !== TILE_WIDTH) throw new Error(`${zone}/${year}: ${path} is not there, or not whole`);
      return rootOf(hashes);
    }),
  );
}
