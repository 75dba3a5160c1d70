// Reads a log as any client can. Fetched data count as far as the checkpoint's signature and the tree prove
// them.
import { z } from 'zod';
import { type Checkpoint, openCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { logYear } from '../../../shared/audit/logged-years.ts';
import { openVerifier, type Verifier } from '../../../shared/audit/note.ts';
import { readVerifierKey } from '../../../shared/audit/note-key.ts';
import { TILE_WIDTH, type Tile, tilePath, tileWith, unpackEntries, unpackHashes } from '../../../shared/audit/tile.ts';
import { emptyRoot, equalBytes, type Hash, hashLeaf } from '../../../shared/audit/tree.ts';
import { TreeWalk } from '../../../shared/audit/tree-walk.ts';
import { zoneName } from '../../../shared/names.ts';
import { readBounded } from '../../../shared/read-bounded.ts';

/** Bundles, with their hashes, that a verification of a log fetches concurrently. */
const LOG_FETCHES_MAX = 4;
/** Longest file of a log: a bundle of 256 entries of 65,535 bytes, each after its length. */
export const LOG_FILE_BYTES = 256 * 65_537;
/** Longest fetch of one log file by a reader: the longest file at two megabits a second. */
const LOG_FILE_TIMEOUT_MS = 60_000;

/** The log violates its format or a signature; the message names the position. */
export class Invalid extends Error {}
/** The edge refused or answered with an error. */
export class Refused extends Error {
  readonly response: Response;
  constructor(response: Response) {
    super(`the edge answered ${response.status}`);
    this.response = response;
  }
}

const listedLog = z.object({
  zone: zoneName,
  year: logYear,
  vkey: z.string(),
  prefix: z.string(),
  first: z.number().optional(),
  size: z.number().optional(),
  state: z.string().optional(),
});

/**
 * Lists logs, the newest of each zone first. The prefix is checked, since it identifies a remembered log: an
 * edge that chose another one would be trusted again.
 */
export const listedLogs = z.object({
  data: z.array(
    listedLog.refine(
      ({ zone, year, prefix }) => prefix === `/v1/audit/log/${zone}/${year}`,
      'a log at another address',
    ),
  ),
});

export interface LogReader {
  readonly verifier: Verifier;
  fetch(path: string): Promise<Uint8Array>;
}

export async function openReader(
  base: string,
  vkey: string,
  headers: Record<string, string>,
): Promise<LogReader | undefined> {
  const key = readVerifierKey(vkey);
  if (!key) return undefined;
  return {
    verifier: await openVerifier(key.name, key.publicKey),
    async fetch(path) {
      const signal = AbortSignal.timeout(LOG_FILE_TIMEOUT_MS);
      const response = await fetch(`${base}/${path}`, { headers, signal });
      if (!response.ok) throw new Refused(response);
      return readFile(response, path);
    },
  };
}

/** Bound of a fetched file: a bundle of the longest entries. */
async function readFile({ body }: Response, path: string): Promise<Uint8Array> {
  const bytes = await readBounded(body, LOG_FILE_BYTES);
  if (!bytes) throw new Invalid(`${path} is longer than its format allows`);
  return bytes;
}

export async function fetchCheckpoint(reader: LogReader): Promise<{ note: Uint8Array; checkpoint: Checkpoint }> {
  const note = await reader.fetch('checkpoint');
  const checkpoint = await openCheckpoint(note, reader.verifier);
  if (!checkpoint) throw new Invalid(`the checkpoint is not signed by ${reader.verifier.name}`);
  return { note, checkpoint };
}

/** Fetches a file of the log; `undefined` when it does not exist. */
export async function fetchIfThere(reader: LogReader, path: string): Promise<Uint8Array | undefined> {
  try {
    return await reader.fetch(path);
  } catch (error) {
    if (error instanceof Refused && error.response.status === 404) return undefined;
    throw error;
  }
}

/**
 * Fetches a tile of a log of `size`. When the log has grown since, it takes the beginning of the full tile.
 */
async function fetchTile<T>(
  reader: LogReader,
  tile: Tile,
  unpack: (bytes: Uint8Array) => T[] | undefined,
): Promise<T[]> {
  const path = tilePath(tile);
  const bytes =
    (await fetchIfThere(reader, path)) ?? (await fetchIfThere(reader, tilePath({ ...tile, width: TILE_WIDTH })));
  if (!bytes) throw new Invalid(`${path} is missing`);
  const parts = unpack(bytes);
  if (!parts || parts.length < tile.width) throw new Invalid(`${path} is not whole`);
  return parts.slice(0, tile.width);
}

/** Fetches the entries of bundle `index` of a log of `size`. */
export const fetchEntries = (reader: LogReader, index: number, size: number): Promise<Uint8Array[]> =>
  fetchTile(reader, { ...tileWith(0, index * TILE_WIDTH, size), level: 'entries' }, unpackEntries);

export const fetchHashes = (reader: LogReader, level: number, at: number, size: number): Promise<Hash[]> =>
  fetchTile(reader, tileWith(level, at, size), unpackHashes);

/**
 * Fetches and hashes a whole log, entries and every tile. Passes each entry in order, and returns the root
 * at each of the `earlier` sizes, for comparison with remembered checkpoints. Memory holds some bundles and
 * a tile of each level. Throws `Invalid`.
 */
export async function walkLog(
  reader: LogReader,
  { size, root }: Checkpoint,
  earlier: readonly number[],
  each: (entry: Uint8Array, index: number) => void,
): Promise<ReadonlyMap<number, Hash>> {
  const upper: { level: number; from: number; hashes: readonly Hash[] }[] = [];
  const walk = new TreeWalk(({ level, index }, hashes) => {
    // Level 0 is compared with the entries below.
    if (level > 0) upper.push({ level, from: index * TILE_WIDTH, hashes });
  });
  const roots = new Map<number, Hash>([[0, emptyRoot]]);
  const bundles = Math.ceil(size / TILE_WIDTH);
  const atOnce = LOG_FETCHES_MAX;
  for (let from = 0; from < bundles; from += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, bundles - from) }, (_, at) => from + at);
    const read = await Promise.all(
      some.map(async (index) => ({
        entries: await fetchEntries(reader, index, size),
        hashes: await fetchHashes(reader, 0, index * TILE_WIDTH, size),
      })),
    );
    for (const { entries, hashes } of read) {
      for (const [at, entry] of entries.entries()) {
        const hash = hashLeaf(entry);
        if (!equalBytes(hash, hashes[at] as Hash)) throw new Invalid(`entry ${walk.size} and its hash do not agree`);
        each(entry, walk.size);
        walk.add(hash);
        if (earlier.includes(walk.size)) roots.set(walk.size, walk.root());
      }
    }
    await checkUpperTiles(reader, upper.splice(0), size);
  }
  walk.end();
  await checkUpperTiles(reader, upper, size);
  if (!equalBytes(walk.root(), root)) throw new Invalid(`the entries have another root than the checkpoint of ${size}`);
  return roots;
}

/** Verifies the upper tiles: each hash is the root of a full tile of the level below. */
async function checkUpperTiles(
  reader: LogReader,
  tiles: readonly { level: number; from: number; hashes: readonly Hash[] }[],
  size: number,
): Promise<void> {
  for (const { level, from, hashes } of tiles) {
    const found = await fetchHashes(reader, level, from, size);
    const same = found.length === hashes.length && found.every((hash, at) => equalBytes(hash, hashes[at] as Hash));
    if (!same) throw new Invalid(`a tile of level ${level} does not agree with those below`);
  }
}
