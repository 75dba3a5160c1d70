// From a commit to what outsiders see: tiles, then a signed checkpoint. All of it can be done again at any time and by
// several at once; whatever is there already must be the same.

import { partialTiles, TILE_WIDTH, tilePath } from '../../../shared/audit/tile.ts';
import { equalBytes, type Hash } from '../../../shared/audit/tree.ts';
import { newestState } from '../log/acknowledge.ts';
import { checkpointName, fileArea, fileName, recordName } from '../log/log-names.ts';
import type { LogState } from '../log/log-state.ts';
import type { Area, LogStore } from '../log/log-store.ts';
import { type Place, putForward, signOnce } from '../log/publish-checkpoint.ts';
import { type LogFile, RightEdge } from '../log/right-edge.ts';
import { loadEdge } from './load-edge.ts';
import { putPartials, remakeEdge } from './remake-edge.ts';
import { unpackRecord } from './write-record.ts';

/** The files of the last commit, made again from its record. */
export async function redoCommit(place: Place, state: LogState): Promise<readonly LogFile[]> {
  const { store, zone, year } = place;
  const { size, root, before } = state;
  const there = await loadEdge(place, before.size, before.root);
  const stored = await store.read('log', recordName(zone, year, size, root));
  const edge = there ?? (await remakeEdge(place, before.size, before.root));
  if (!stored) throw new Error(`${zone}/${year} of ${size}: the record of the commit is not there`);
  const { from, entries } = unpackRecord(stored.bytes);
  if (from !== before.size) throw new Error(`${zone}/${year} of ${size}: the record is of another commit`);
  const again = new RightEdge(edge.facts);
  for (const entry of entries) again.append(entry);
  if (!equalBytes(again.root(), root)) throw new Error(`${zone}/${year} of ${size}: the record has another root`);
  return again.files();
}

/**
 * Writes the files of a commit and publishes its checkpoint. Before it signs, it reads back and hashes
 * everything that the root is made of, since a signed wrong bit ends a log. Returns the right edge;
 * `undefined` after a concurrent commit.
 */
export async function publish(
  place: Place,
  { origin, size, root }: LogState,
  files: readonly LogFile[],
): Promise<RightEdge | undefined> {
  const { store, zone, year } = place;
  await Promise.all(files.map((file) => putOnce(store, fileArea(file), fileName(zone, year, file.path), file.bytes)));
  const edge = (await loadEdge(place, size, root)) ?? (await loadAgain(place, size, root));
  if (!edge) return undefined;
  await putForward(store, checkpointName(zone, year), await signOnce(place, { origin, size, root }));
  return edge;
}

/** Publishes when a partial tile is missing: lost, or replaced by a concurrent commit. */
export async function loadAgain(place: Place, size: number, root: Hash): Promise<RightEdge | undefined> {
  const { store, zone, year } = place;
  const state = await newestState(store, zone);
  if (state?.year !== year || state.size !== size) return undefined;
  await putPartials(store, zone, year, await remakeEdge(place, size, root));
  return loadEdge(place, size, root);
}

async function putOnce(store: LogStore, area: Area, name: string, bytes: Uint8Array): Promise<void> {
  if (await store.create(area, name, bytes)) return;
  const stored = await store.read(area, name);
  // Gone again: a partial tile that is full by now.
  if (!stored && area === 'state') return;
  if (!stored || !equalBytes(stored.bytes, bytes)) throw new Error(`${area} ${name}: something else is there`);
}

/** Removes partial tiles that this commit has filled. */
export async function dropPartials(
  { store, zone, year }: Place,
  before: number,
  files: readonly LogFile[],
): Promise<void> {
  const full = new Set(files.filter(({ partial }) => !partial).map(({ path }) => path));
  const filled = partialTiles(before)
    .map((tile) => tilePath({ ...tile, width: TILE_WIDTH }))
    .filter((path) => full.has(path));
  await Promise.all(
    filled.map(async (path) => {
      const names = await store.list('state', `${fileName(zone, year, path)}.p/`, TILE_WIDTH);
      await Promise.all(names.map((name) => store.remove('state', name)));
    }),
  );
}
