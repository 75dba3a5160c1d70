// Index of an MP4 file: `moov` and `moof` boxes (ISO/IEC 14496-12 §8). Tables are read where they lie, entry by entry.

/** Boxes that one box may hold: real ones hold a dozen. */
const BOXES_MAX = 1_024;

export interface Box {
  readonly type: string;
  readonly body: DataView;
}

/** A packet by its bytes in the file. */
export interface Sample {
  readonly offset: number;
  readonly size: number;
}

export interface Mp4Track {
  readonly id: number;
  /** Four letters of the sample entry: `mp4a`, `Opus`. */
  readonly entry: string;
  /** Boxes inside the sample entry. */
  readonly details: readonly Box[];
  readonly timescale: number;
  /** First unit of `timescale` that is played (edit list). */
  readonly start: number;
  /** Boxes of the sample table. */
  readonly table: readonly Box[];
  /** Size of samples of fragments that give none. */
  readonly defaultSize: number;
}

const text = (view: DataView, at: number) =>
  String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at, 4));

export const part = (view: DataView, at: number, length = view.byteLength - at): DataView =>
  new DataView(view.buffer, view.byteOffset + at, length);

/** Returns the first boxes inside `body`; stops at one that does not fit. */
export function boxesIn(body: DataView): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at + 8 <= body.byteLength && boxes.length < BOXES_MAX; ) {
    const size = body.getUint32(at);
    if (size < 8 || at + size > body.byteLength) break;
    boxes.push({ type: text(body, at + 4), body: part(body, at + 8, size - 8) });
    at += size;
  }
  return boxes;
}

/** Finds the first box below `body` by the types on its way. */
export function findBox(body: DataView, ...path: readonly string[]): DataView | undefined {
  const [first, ...rest] = path;
  if (first === undefined) return body;
  const found = boxesIn(body).find(({ type }) => type === first);
  return found && findBox(found.body, ...rest);
}

/** Bytes before the boxes of an audio sample entry, by its version (0; 1 and 2 are QuickTime's). */
const ENTRY_BYTES = [28, 44, 64] as const;

function readEntry(stsd: DataView): Pick<Mp4Track, 'entry' | 'details'> | undefined {
  const [first] = boxesIn(part(stsd, 8));
  if (!first || first.body.byteLength < 28) return undefined;
  const skip = ENTRY_BYTES[first.body.getUint16(8) as 0 | 1 | 2];
  if (skip === undefined || skip > first.body.byteLength) return undefined;
  const details = boxesIn(part(first.body, skip));
  // QuickTime wraps the descriptor in a box of its own.
  const wrapped = details.find(({ type }) => type === 'wave');
  return { entry: first.type, details: wrapped ? boxesIn(wrapped.body) : details };
}

/** Version 1 has 64-bit times. */
const isLong = (box: DataView) => box.getUint8(0) === 1;

/** Media time of the first edit that shows something. */
function readStart(elst: DataView | undefined): number {
  if (!elst) return 0;
  const long = isLong(elst);
  for (let i = 0, at = 8; i < elst.getUint32(4) && i < 8; i++, at += long ? 20 : 12) {
    const time = long ? Number(elst.getBigInt64(at + 8)) : elst.getInt32(at + 4);
    if (time >= 0) return time;
  }
  return 0;
}

function readTrack(trak: DataView, moov: DataView): Mp4Track | undefined {
  const handler = findBox(trak, 'mdia', 'hdlr');
  const tkhd = findBox(trak, 'tkhd');
  const mdhd = findBox(trak, 'mdia', 'mdhd');
  const stbl = findBox(trak, 'mdia', 'minf', 'stbl');
  const stsd = stbl && findBox(stbl, 'stsd');
  if (!handler || text(handler, 8) !== 'soun' || !tkhd || !mdhd || !stbl || !stsd) return undefined;
  const entry = readEntry(stsd);
  if (!entry) return undefined;
  const id = tkhd.getUint32(isLong(tkhd) ? 20 : 12);
  const extended = boxesIn(findBox(moov, 'mvex') ?? part(moov, 0, 0))
    .filter(({ type, body }) => type === 'trex' && body.getUint32(4) === id)
    .map(({ body }) => body.getUint32(16));
  return {
    id,
    ...entry,
    timescale: mdhd.getUint32(isLong(mdhd) ? 20 : 12),
    start: readStart(findBox(trak, 'edts', 'elst')),
    table: boxesIn(stbl),
    defaultSize: extended[0] ?? 0,
  };
}

/** Reads the first track of sound. Throws a `RangeError` where a box is shorter than its fields. */
export function readMoov(moov: DataView): Mp4Track | undefined {
  for (const { type, body } of boxesIn(moov)) {
    const track = type === 'trak' ? readTrack(body, moov) : undefined;
    if (track) return track;
  }
  return undefined;
}

/** Samples of a track in the order of decoding (§8.7), each computed on demand. */
export function* readSamples({ table }: Mp4Track): Generator<Sample> {
  const box = (...types: readonly string[]) => table.find(({ type }) => types.includes(type));
  const [sizes, runs, chunks] = [box('stsz')?.body, box('stsc')?.body, box('stco', 'co64')];
  if (!sizes || !runs || !chunks) return;
  const fixed = sizes.getUint32(4);
  const count = sizes.getUint32(8);
  const offsetOf = (chunk: number) =>
    chunks.type === 'co64' ? Number(chunks.body.getBigUint64(8 + 8 * chunk)) : chunks.body.getUint32(8 + 4 * chunk);
  let sample = 0;
  let run = 0;
  for (let chunk = 0; chunk < chunks.body.getUint32(4) && sample < count; chunk++) {
    while (run + 1 < runs.getUint32(4) && runs.getUint32(8 + 12 * (run + 1)) <= chunk + 1) run++;
    let offset = offsetOf(chunk);
    for (let left = runs.getUint32(12 + 12 * run); left > 0 && sample < count; left--, sample++) {
      const size = fixed || sizes.getUint32(12 + 4 * sample);
      yield { offset, size };
      offset += size;
    }
  }
}

/** Samples of a fragment (§8.8); `start` is the offset of its `moof` in the file. */
export function* readFragment(moof: DataView, { id, defaultSize }: Mp4Track, start: number): Generator<Sample> {
  for (const { type, body } of boxesIn(moof)) {
    const tfhd = type === 'traf' ? findBox(body, 'tfhd') : undefined;
    if (!tfhd || tfhd.getUint32(4) !== id) continue;
    const flags = tfhd.getUint32(0);
    let at = 8;
    const base = flags & 1 ? Number(tfhd.getBigUint64(at)) : start;
    at += (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0) + (flags & 8 ? 4 : 0);
    const size = flags & 0x10 ? tfhd.getUint32(at) : defaultSize;
    let offset = base;
    for (const { type: inner, body: trun } of boxesIn(body)) {
      if (inner !== 'trun') continue;
      const bits = trun.getUint32(0);
      if (bits & 1) offset = base + trun.getInt32(8);
      const row = 4 * [0x100, 0x200, 0x400, 0x800].filter((bit) => bits & bit).length;
      let field = 8 + (bits & 1 ? 4 : 0) + (bits & 4 ? 4 : 0);
      for (let left = trun.getUint32(4); left > 0; left--, field += row) {
        const own = bits & 0x200 ? trun.getUint32(field + (bits & 0x100 ? 4 : 0)) : size;
        yield { offset, size: own };
        offset += own;
      }
    }
  }
}
