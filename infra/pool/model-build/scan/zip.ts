import { inflateRawSync } from 'node:zlib';
import { ok } from '../../../../shared/result.ts';
import { createNames, plainPath } from '../../models/config/names.ts';
import type { Blob } from '../blob.ts';
import { MODEL_MANIFEST_BYTES, MODEL_SOURCE_ENTRIES_MAX, MODEL_UNPACKED_BYTES } from '../limits.ts';
import { type BuildResult, problem } from '../problem.ts';

export interface ZipEntry {
  readonly name: string;
  readonly packed: number;
  readonly size: number;
  readonly method: number;
  /** Offset of its bytes, after the local header. */
  readonly at: number;
}

const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;
const CENTRAL = 0x02014b50;
const LOCAL = 0x04034b50;

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const big = (view: DataView, at: number): number => Number(view.getBigUint64(at, true));

/**
 * Lists the files of a zip by its directory, each checked against its local header: two readers must not see
 * two different zips. Nothing is inflated here, and sizes are bounded before anything is.
 */
export async function listZip(zip: Blob): Promise<BuildResult<ZipEntry[]>> {
  const damaged = (why: string) => problem('damaged', `${zip.name}: the zip ${why}`);
  const directory = await findDirectory(zip);
  if (!directory) return damaged('has no directory');
  const { at, size, count } = directory;
  if (count > MODEL_SOURCE_ENTRIES_MAX) return problem('bound', `${zip.name} has ${count} entries`);
  if (at + size > zip.size || size > MODEL_MANIFEST_BYTES) return damaged('directory is damaged');
  const bytes = await zip.read(at, size);
  const entries: ZipEntry[] = [];
  const names = createNames();
  let [from, total, packed] = [0, 0, 0];
  for (let n = 0; n < count; n++) {
    const read = readEntry(bytes, from);
    if (!read) return damaged('directory is damaged');
    const { written, local, next } = read;
    const name = plainPath(written);
    if (name === undefined) return problem('unsafe', `${zip.name}: the name ${JSON.stringify(written)}`);
    const clash = names.add(name, written.endsWith('/') ? 'folder' : 'file');
    if (clash !== undefined) return problem('unsafe', `${zip.name}: ${clash}`);
    const begin = await findContent(zip, local, written);
    if (begin === undefined || begin + read.packed > at) return damaged(`and its directory differ about ${name}`);
    if (read.method === 0 && read.packed !== read.size) return damaged(`and its directory differ about ${name}`);
    total += read.size;
    packed += read.packed;
    if (total > MODEL_UNPACKED_BYTES) return problem('bound', `${zip.name} unpacks to too much`);
    if (!written.endsWith('/')) {
      entries.push({ name, packed: read.packed, size: read.size, method: read.method, at: begin });
    }
    from = next;
  }
  // Some readers read as many entries as declared, some as many as fit.
  if (from !== size) return damaged('directory goes on behind its last entry');
  // Overlapping files make a small zip inflate to a large one.
  return packed > at ? problem('bound', `${zip.name}: its files overlap`) : ok(entries);
}

async function findDirectory(zip: Blob): Promise<{ at: number; size: number; count: number } | undefined> {
  const length = Math.min(zip.size, 65_557);
  const tail = await zip.read(zip.size - length, length);
  const view = viewOf(tail);
  let end = tail.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== END) end--;
  if (end < 0 || end + 22 + view.getUint16(end + 20, true) !== tail.length) return undefined;
  // Python locates the directory in front of this record, whatever the record declares: both must agree.
  const place = zip.size - length + end;
  const plain = {
    at: view.getUint32(end + 16, true),
    size: view.getUint32(end + 12, true),
    count: view.getUint16(end + 10, true),
  };
  if (end < 20 || view.getUint32(end - 20, true) !== LOCATOR_64) return endsAt(plain, place);
  const at = place - 20 - 56;
  if (big(view, end - 12) !== at) return undefined;
  const wide = await zip.read(at, 56);
  if (wide.length < 56 || viewOf(wide).getUint32(0, true) !== END_64) return undefined;
  const found = viewOf(wide);
  return endsAt({ at: big(found, 48), size: big(found, 40), count: big(found, 32) }, at);
}

const endsAt = <T extends { at: number; size: number }>(directory: T, place: number): T | undefined =>
  directory.at + directory.size === place ? directory : undefined;

interface Read {
  readonly written: string;
  readonly packed: number;
  readonly size: number;
  readonly method: number;
  readonly local: number;
  readonly next: number;
}

function readEntry(bytes: Uint8Array, at: number): Read | undefined {
  const view = viewOf(bytes);
  if (at + 46 > bytes.length || view.getUint32(at, true) !== CENTRAL) return undefined;
  const [nameLength, extraLength, noteLength] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true)) as [
    number,
    number,
    number,
  ];
  const next = at + 46 + nameLength + extraLength + noteLength;
  // The lowest bit of the flags: encrypted.
  if (next > bytes.length || (view.getUint16(at + 8, true) & 1) !== 0) return undefined;
  const written = Buffer.from(bytes.subarray(at + 46, at + 46 + nameLength)).toString('utf8');
  let [packed, size, local] = [20, 24, 42].map((offset) => view.getUint32(at + offset, true)) as [
    number,
    number,
    number,
  ];
  // Overflowed numbers are in an extra field, in this order and without the others.
  const end = at + 46 + nameLength + extraLength;
  for (let extra = at + 46 + nameLength; extra + 4 <= end; extra += 4 + view.getUint16(extra + 2, true)) {
    // Another name of the entry, which only some readers use.
    if (view.getUint16(extra, true) === 0x7075) return undefined;
    if (view.getUint16(extra, true) !== 1) continue;
    let field = extra + 4;
    const wide = (given: number) => {
      if (given !== 0xffffffff) return given;
      field += 8;
      return field <= end ? big(view, field - 8) : Number.NaN;
    };
    [size, packed, local] = [wide(size), wide(packed), wide(local)];
  }
  if (![packed, size, local].every(Number.isSafeInteger)) return undefined;
  return { written, packed, size, local, method: view.getUint16(at + 10, true), next };
}

/** Returns the offset of the bytes after a local header, if that header names the same file. */
async function findContent(zip: Blob, at: number, written: string): Promise<number | undefined> {
  const header = await zip.read(at, 30);
  if (header.length < 30 || viewOf(header).getUint32(0, true) !== LOCAL) return undefined;
  const [nameLength, extraLength] = [viewOf(header).getUint16(26, true), viewOf(header).getUint16(28, true)];
  const name = Buffer.from(await zip.read(at + 30, nameLength)).toString('utf8');
  return name === written ? at + 30 + nameLength + extraLength : undefined;
}

/** Returns the inflated bytes of an entry, up to a bound. */
export async function readZipEntry(zip: Blob, entry: ZipEntry, most: number): Promise<BuildResult<Uint8Array>> {
  if (entry.size > most || entry.packed > most)
    return problem('bound', `${zip.name}/${entry.name} has ${entry.size} bytes`);
  const bytes = await zip.read(entry.at, entry.packed);
  if (entry.method === 0) return ok(bytes);
  if (entry.method !== 8)
    return problem('unsafe', `${zip.name}/${entry.name} is packed in a way this tool does not know`);
  try {
    const unpacked = inflateRawSync(bytes, { maxOutputLength: Math.max(1, entry.size) });
    return unpacked.length === entry.size ? ok(unpacked) : problem('damaged', `${zip.name}/${entry.name} is damaged`);
  } catch {
    return problem('damaged', `${zip.name}/${entry.name} is damaged or unpacks to more than it says`);
  }
}
