// Paths and contents of tiles (C2SP tlog-tiles). A tile holds up to 256 hashes of one level; level 0 is that
// of the leaves, and each level above has one hash for each full tile below. Only full tiles are hashed
// upwards.
import { HASH_BYTES, type Hash } from './tree.ts';

/** Hashes of a full tile, and entries of a full bundle. */
export const TILE_WIDTH = 256;
/** The length of an entry takes two bytes. */
export const ENTRY_BYTES_MAX = 65_535;
/** 256^6 entries exceed the exact integers of a number. */
const LEVELS_MAX = 6;

/** A tile of hashes or a bundle of entries. */
export interface Tile {
  readonly level: number | 'entries';
  readonly index: number;
  /** 256 in a full tile. */
  readonly width: number;
}

/** A tile of hashes. */
export interface TreeTile extends Tile {
  readonly level: number;
}

export function tilePath({ level, index, width }: Tile): string {
  let text = String(index % 1_000).padStart(3, '0');
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000)) {
    text = `x${String(rest % 1_000).padStart(3, '0')}/${text}`;
  }
  return `tile/${level}/${text}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

const PATH = /^tile\/(entries|[0-5])\/((?:x\d{3}\/)*\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/** Parses a path; `undefined` unless it is the canonical one of `tilePath`. */
export function readTilePath(path: string): Tile | undefined {
  const [, level, digits = '', width] = PATH.exec(path) ?? [];
  if (level === undefined) return undefined;
  const index = Number(digits.replace(/[x/]/g, ''));
  const tile: Tile = {
    level: level === 'entries' ? level : Number(level),
    index,
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  const known = Number.isSafeInteger(index) && tile.width <= TILE_WIDTH && tilePath(tile) === path;
  return known ? tile : undefined;
}

/** Returns the partial tile of each level of a log of that size. */
export function partialTiles(size: number): Tile[] {
  const tiles: Tile[] = [];
  for (let level = 0, count = size; count > 0 && level < LEVELS_MAX; level += 1) {
    const width = count % TILE_WIDTH;
    count = Math.floor(count / TILE_WIDTH);
    if (width > 0) tiles.push({ level, index: count, width });
  }
  const [first] = tiles;
  return first?.level === 0 ? [...tiles, { ...first, level: 'entries' }] : tiles;
}

/** Returns the tile that holds hash `at` of `level` in a log of `size` entries. The hash must exist. */
export function tileWith(level: number, at: number, size: number): TreeTile {
  const index = Math.floor(at / TILE_WIDTH);
  const count = Math.floor(size / TILE_WIDTH ** level);
  return { level, index, width: Math.min(TILE_WIDTH, count - index * TILE_WIDTH) };
}

export function packHashes(hashes: readonly Hash[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(hashes.length * HASH_BYTES);
  for (const [at, hash] of hashes.entries()) bytes.set(hash, at * HASH_BYTES);
  return bytes;
}

/** Splits bytes into hashes; `undefined` for a partial hash. */
export function unpackHashes(bytes: Uint8Array): Hash[] | undefined {
  if (bytes.length % HASH_BYTES !== 0) return undefined;
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, at) =>
    bytes.slice(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
}

/** Packs an entry bundle: each entry follows its length. */
export function packEntries(entries: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(entries.reduce((sum, entry) => sum + 2 + entry.length, 0));
  let at = 0;
  for (const entry of entries) {
    if (entry.length > ENTRY_BYTES_MAX) throw new RangeError(`an entry of ${entry.length} bytes`);
    bytes[at] = entry.length >> 8;
    bytes[at + 1] = entry.length & 0xff;
    bytes.set(entry, at + 2);
    at += 2 + entry.length;
  }
  return bytes;
}

/** Unpacks an entry bundle; `undefined` when an entry is truncated. */
export function unpackEntries(bytes: Uint8Array): Uint8Array[] | undefined {
  const entries: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = ((bytes[at] as number) << 8) | (bytes[at + 1] ?? 0);
    const end = at + 2 + length;
    if (end > bytes.length) return undefined;
    entries.push(bytes.subarray(at + 2, end));
    at = end;
  }
  return entries;
}
