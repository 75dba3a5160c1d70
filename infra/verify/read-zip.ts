// Files of a zip archive, by its central directory, found without unpacking it. Content needs no check here: the manifest of
// an export has the digest of each file.

import { MiB } from '../../shared/bytes.ts';
import type { Archive } from './archive-source.ts';

/** Directory of an export's zip, in memory: a hundred bytes for each of some thousand files. */
const ZIP_DIRECTORY_BYTES = 64 * MiB;
/** One unpacked file of a zip: files of an export are a few parts of 8 MiB, and a zip can claim any size. */
const ZIP_FILE_BYTES = 256 * MiB;

/** Inflates raw deflate to at most `most` bytes; `undefined` when it is damaged or longer. */
export type Inflate = (bytes: Uint8Array, most: number) => Promise<Uint8Array | undefined>;

export interface ZipEntry {
  readonly method: number;
  /** Offset of the local header, in bytes. */
  readonly at: number;
  readonly packed: number;
  readonly size: number;
}

const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;
const CENTRAL = 0x02014b50;
const LOCAL = 0x04034b50;
/** Size of the end record with its longest comment. */
const END_BYTES = 22 + 65_535;
const ENCRYPTED = 1;
const [STORED, DEFLATED] = [0, 8];
/** Marks a number that the extra field holds instead (zip64). */
const ELSEWHERE = 0xffff_ffff;

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const wideAt = (view: DataView, at: number): number => Number(view.getBigUint64(at, true));

/** Returns the entries by path; `undefined` when it is no zip that this reader supports. */
export async function readZip(archive: Archive): Promise<Map<string, ZipEntry> | undefined> {
  const directory = await findDirectory(archive);
  if (!directory || directory.size > ZIP_DIRECTORY_BYTES) return undefined;
  if (!(directory.at + directory.size <= archive.size)) return undefined;
  const bytes = await archive.slice(directory.at, directory.at + directory.size);
  const found = new Map<string, ZipEntry>();
  for (let at = 0; at < bytes.length; ) {
    const read = readEntry(bytes, at);
    // Readers differ in their choice between two entries of one path.
    if (!read || found.has(read.path)) return undefined;
    if (!read.path.endsWith('/')) found.set(read.path, read.entry);
    at = read.next;
  }
  return found;
}

async function findDirectory(archive: Archive): Promise<{ at: number; size: number } | undefined> {
  const from = Math.max(0, archive.size - END_BYTES);
  const tail = await archive.slice(from, archive.size);
  const view = viewOf(tail);
  let end = tail.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== END) end -= 1;
  if (end < 0) return undefined;
  const plain = { at: view.getUint32(end + 16, true), size: view.getUint32(end + 12, true) };
  if (end < 20 || view.getUint32(end - 20, true) !== LOCATOR_64) return plain;
  const at = wideAt(view, end - 12);
  if (at > archive.size) return undefined;
  const wide = await archive.slice(at, at + 56);
  if (wide.length < 56 || viewOf(wide).getUint32(0, true) !== END_64) return undefined;
  return { at: wideAt(viewOf(wide), 48), size: wideAt(viewOf(wide), 40) };
}

function readEntry(bytes: Uint8Array, at: number) {
  const view = viewOf(bytes);
  if (at + 46 > bytes.length || view.getUint32(at, true) !== CENTRAL) return undefined;
  const [name, extra, note] = [28, 30, 32].map((field) => view.getUint16(at + field, true)) as [number, number, number];
  const next = at + 46 + name + extra + note;
  if (next > bytes.length || (view.getUint16(at + 8, true) & ENCRYPTED) !== 0) return undefined;
  const numbers = [24, 20, 42].map((field) => view.getUint32(at + field, true)) as [number, number, number];
  const [size, packed, local] = widen(view, numbers, at + 46 + name, at + 46 + name + extra);
  if (![size, packed, local, local + packed].every(Number.isSafeInteger)) return undefined;
  const path = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + name)).replace(/^\.\//, '');
  return { path, next, entry: { method: view.getUint16(at + 10, true), at: local, packed, size } };
}

/** Replaces overflowed numbers from the extra field, which lists them in this order. */
function widen(view: DataView, given: [number, number, number], from: number, to: number): [number, number, number] {
  for (let extra = from; extra + 4 <= to; extra += 4 + view.getUint16(extra + 2, true)) {
    if (view.getUint16(extra, true) !== 1) continue;
    let field = extra + 4;
    return given.map((number) => {
      if (number !== ELSEWHERE) return number;
      field += 8;
      return field <= to ? wideAt(view, field - 8) : Number.NaN;
    }) as [number, number, number];
  }
  return given;
}

/**
 * Returns the content of an entry; `undefined` when it is damaged, in another compression, or longer than a
 * file may be.
 */
export async function readZipFile(
  archive: Archive,
  entry: ZipEntry,
  inflate: Inflate,
): Promise<Uint8Array | undefined> {
  const { method, at, packed, size } = entry;
  if (size > ZIP_FILE_BYTES || packed > ZIP_FILE_BYTES) return undefined;
  const head = await archive.slice(at, at + 30);
  if (head.length < 30 || viewOf(head).getUint32(0, true) !== LOCAL) return undefined;
  const from = at + 30 + viewOf(head).getUint16(26, true) + viewOf(head).getUint16(28, true);
  const bytes = await archive.slice(from, from + packed);
  if (method === STORED) return bytes;
  return method === DEFLATED ? inflate(bytes, size) : undefined;
}
