import { ok } from '../../../../shared/result.ts';
import { createNames, plainPath } from '../../models/config/names.ts';
import { type Blob, sliceOf } from '../blob.ts';
import { MODEL_SOURCE_ENTRIES_MAX, MODEL_UNPACKED_BYTES } from '../limits.ts';
import { type BuildResult, problem } from '../problem.ts';
import { BLOCK, checksum, padding } from './header.ts';

const latin = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1').replace(/\0.*$/s, '');

/** Parses a number of a header: octal digits, or GNU's binary form for larger ones. */
function numberAt(bytes: Uint8Array): number {
  if (((bytes[0] ?? 0) & 0x80) === 0) {
    const digits = latin(bytes).trim();
    return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : digits === '' ? 0 : Number.NaN;
  }
  // Its other forms are negative, or not portable.
  if (bytes[0] !== 0x80) return Number.NaN;
  let value = 0n;
  for (const [at, byte] of bytes.entries()) value = (value << 8n) | BigInt(at === 0 ? byte & 0x7f : byte);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : Number.NaN;
}

const utf8 = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8').replace(/\0.*$/s, '');

interface Pending {
  path?: string;
  size?: number;
}

/**
 * Lists the files of a tar, without reading them. Refuses links, devices and other special entries, names
 * that lead out of it, names that some disk confuses, and totals over the bounds.
 */
export async function listTar(tar: Blob): Promise<BuildResult<Blob[]>> {
  const files: Blob[] = [];
  const names = createNames();
  let pending: Pending = {};
  let total = 0;
  for (let at = 0, count = 0; ; count++) {
    if (count > 2 * MODEL_SOURCE_ENTRIES_MAX) return problem('bound', `${tar.name} has too many entries`);
    const header = await tar.read(at, BLOCK);
    // Two empty blocks end a tar; one without them is accepted, as by every reader.
    if (header.length === 0 || header.every((byte) => byte === 0)) return ok(files);
    if (header.length < BLOCK || numberAt(header.subarray(148, 156)) !== checksum(header)) {
      return problem('damaged', `${tar.name} is no tar, or is damaged at ${at}`);
    }
    const type = String.fromCharCode(header[156] ?? 0);
    const isExtension = type === 'L' || type === 'x' || type === 'g';
    const own = numberAt(header.subarray(124, 136));
    const size = isExtension ? own : (pending.size ?? own);
    if (!Number.isSafeInteger(size) || at + BLOCK + size > tar.size)
      return problem('damaged', `${tar.name} is cut off`);
    const next = at + BLOCK + size + padding(size);
    if (isExtension) {
      const read = await readExtension(tar, { type, at: at + BLOCK, size }, pending);
      if (!read.ok) return read;
      pending = read.value;
      at = next;
      continue;
    }
    const prefix = utf8(header.subarray(345, 500));
    const short = utf8(header.subarray(0, 100));
    const isPosix = latin(header.subarray(257, 263)) === 'ustar';
    // Some readers put the prefix in front of the name in any kind of tar.
    if (!isPosix && prefix) return problem('unsafe', `${tar.name}: ${short} has a second name`);
    const written = pending.path ?? (isPosix && prefix ? `${prefix}/${short}` : short);
    pending = {};
    at = next;
    if (type !== '0' && type !== '\0' && type !== '5')
      return problem('unsafe', `${tar.name}: ${written} is no plain file (type ${type})`);
    // Some readers ignore the size of a folder, and take a file with a folder's name for a folder.
    if (type === '5' ? size !== 0 : written.endsWith('/'))
      return problem('unsafe', `${tar.name}: ${JSON.stringify(written)} is a folder with a content`);
    if (type === '5' && /^(\.\/*)+$/.test(written)) continue;
    const name = plainPath(written);
    if (name === undefined)
      return problem('unsafe', `${tar.name}: the name ${JSON.stringify(written)} leads elsewhere`);
    const clash = names.add(name, type === '5' ? 'folder' : 'file');
    if (clash !== undefined) return problem('unsafe', `${tar.name}: ${clash}`);
    if (type === '5') continue;
    total += size;
    if (files.length >= MODEL_SOURCE_ENTRIES_MAX || total > MODEL_UNPACKED_BYTES) {
      return problem('bound', `${tar.name} holds too much`);
    }
    files.push(sliceOf(tar, name, next - size - padding(size), size));
  }
}

/** Position and size, in bytes, of an extended header's content. */
interface Extension {
  readonly type: string;
  readonly at: number;
  readonly size: number;
}

/** Reads GNU's long names, and path and size of POSIX extended headers; other records do not matter here. */
async function readExtension(
  tar: Blob,
  { type, at, size }: Extension,
  pending: Pending,
): Promise<BuildResult<Pending>> {
  if (size > 64 * BLOCK) return problem('bound', `${tar.name}: an extended header of ${size} bytes`);
  const text = Buffer.from(await tar.read(at, size)).toString('utf8');
  const again = problem('unsafe', `${tar.name}: an extended header says again what one before it said`);
  if (type === 'L') return pending.path === undefined ? ok({ ...pending, path: text.replace(/\0.*$/s, '') }) : again;
  // A global header would rename everything that follows.
  if (type === 'g')
    return /(^|\n)\d+ (path|size|linkpath|hdrcharset|GNU\.sparse\.[^=]*)=/.test(text)
      ? problem('unsafe', `${tar.name}: a global header renames its files`)
      : ok(pending);
  const found: Pending = { ...pending };
  for (let from = 0; from < text.length; ) {
    const [whole = '', length, key, value = ''] = /^(\d+) ([^=]+)=([^\n]*)\n/.exec(text.slice(from)) ?? [];
    if (whole === '' || Buffer.byteLength(whole) !== Number(length))
      return problem('damaged', `${tar.name}: an extended header is damaged`);
    // Records that give some readers another name or another content.
    if (key === 'hdrcharset' || key?.startsWith('GNU.sparse.'))
      return problem('unsafe', `${tar.name}: an extended header says ${key}`);
    if ((key === 'path' && found.path !== undefined) || (key === 'size' && found.size !== undefined)) return again;
    if (key === 'path') found.path = value;
    if (key === 'size') {
      if (!/^(0|[1-9]\d{0,14})$/.test(value))
        return problem('unsafe', `${tar.name}: an extended header says the size ${JSON.stringify(value.slice(0, 40))}`);
      found.size = Number(value);
    }
    from += whole.length;
  }
  return ok(found);
}
