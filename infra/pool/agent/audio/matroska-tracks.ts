import type { Track } from './demuxer.ts';
import { type Element, elementsIn, readUint, readVint } from './ebml.ts';

const ENTRY = 0xae;
const NUMBER = 0xd7;
const TYPE = 0x83;
const CODEC = 0x86;
const PRIVATE = 0x63a2;
const DELAY = 0x56aa;
const ENCODINGS = 0x6d80;
const AUDIO = 2;

const codecs: Readonly<Record<string, Track['codec']>> = { A_OPUS: 'opus', A_VORBIS: 'vorbis', A_AAC: 'aac' };
const NANOSECONDS = 1e9;

export interface MatroskaTrack {
  readonly number: number;
  /** Numbers of all tracks, those without sound included. */
  readonly declared: ReadonlySet<number>;
  readonly track: Track;
}

/** Returns the first track of sound, or what is there instead. */
export function readTracks(body: Uint8Array, container: string): MatroskaTrack | { readonly found: string } {
  const entries = elementsIn(body).filter(({ id }) => id === ENTRY);
  const numberOf = (parts: readonly Element[]): number =>
    readUint(parts.find(({ id }) => id === NUMBER)?.body ?? new Uint8Array(0));
  const declared = new Set(entries.map(({ body: entry }) => numberOf(elementsIn(entry))));
  for (const entry of entries) {
    const parts = elementsIn(entry.body);
    const find = (id: number): Element['body'] | undefined => parts.find((part) => part.id === id)?.body;
    if (readUint(find(TYPE) ?? new Uint8Array(0)) !== AUDIO) continue;
    const name = String.fromCharCode(...(find(CODEC) ?? [])).replace(/[^\x20-\x7e]/g, '');
    const codec = codecs[name];
    if (!codec) return { found: `'${name.slice(0, 32)}' in ${container}` };
    if (find(ENCODINGS)) return { found: `a packed or encrypted track in ${container}` };
    return {
      number: numberOf(parts),
      declared,
      track: {
        codec,
        container,
        config: find(PRIVATE)?.slice() ?? new Uint8Array(0),
        skipSeconds: readUint(find(DELAY) ?? new Uint8Array(0)) / NANOSECONDS,
      },
    };
  }
  return { found: `${container} without a track of sound` };
}

const XIPH = 1;
const FIXED = 2;

/** Sizes of all frames but the last one, and where they begin; undefined when they do not fit. */
function readLacing(block: Uint8Array, at: number, lacing: number): { sizes: number[]; start: number } | undefined {
  const count = block[at] ?? 0;
  let start = at + 1;
  const sizes: number[] = [];
  if (lacing === FIXED) {
    const size = (block.length - start) / (count + 1);
    return Number.isInteger(size) ? { sizes: Array<number>(count).fill(size), start } : undefined;
  }
  for (let i = 0; i < count; i++) {
    if (lacing === XIPH) {
      let size = 0;
      while (block[start] === 255) size += block[start++] ?? 0;
      sizes.push(size + (block[start++] ?? 0));
      continue;
    }
    // EBML lacing: the first size, then differences to the one before.
    const read = readVint(block, start);
    if (!read || read === 'broken') return undefined;
    start += read.bytes;
    const bias = 2 ** (7 * read.bytes - 1) - 1;
    sizes.push(i === 0 ? read.value : (sizes[i - 1] ?? 0) + read.value - bias);
  }
  return { sizes, start };
}

/** Frames of a block behind the number of its track (RFC 9559 §10); undefined when they are damaged. */
export function framesOf(block: Uint8Array): Uint8Array[] | undefined {
  if (block.length < 3) return undefined;
  const lacing = ((block[2] ?? 0) >> 1) & 3;
  if (lacing === 0) return [block.subarray(3)];
  const read = readLacing(block, 3, lacing);
  if (!read) return undefined;
  const frames: Uint8Array[] = [];
  let at = read.start;
  for (const size of read.sizes) {
    if (size < 0 || at + size > block.length) return undefined;
    frames.push(block.subarray(at, at + size));
    at += size;
  }
  return [...frames, block.subarray(at)];
}
