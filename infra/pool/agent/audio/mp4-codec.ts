import type { Track } from './demuxer.ts';
import type { Mp4Track } from './mp4-tables.ts';

/** MPEG-4 Audio and MPEG-2 AAC-LC (ISO/IEC 14496-1 §7.2.6.6.2). */
const aacTypes: ReadonlySet<number> = new Set([0x40, 0x67]);
/** Other object types, for refusals. */
const otherTypes: Readonly<Record<number, string>> = {
  102: 'AAC Main',
  104: 'AAC SSR',
  105: 'MP3',
  107: 'MP3',
  165: 'AC-3',
  166: 'E-AC-3',
  169: 'DTS',
};
const otherEntries: Readonly<Record<string, string>> = {
  alac: 'Apple Lossless',
  'ac-3': 'AC-3',
  'ec-3': 'E-AC-3',
  fLaC: 'FLAC',
  '.mp3': 'MP3',
  samr: 'AMR-NB',
  sawb: 'AMR-WB',
  enca: 'encrypted sound',
  drms: 'encrypted sound',
};

/** Tags of descriptors (ISO/IEC 14496-1 §7.2.2.1). */
const ES = 3;
const DECODER_CONFIG = 4;
const SPECIFIC_INFO = 5;

interface Descriptor {
  readonly tag: number;
  readonly body: DataView;
}

/** The descriptor at `at`: a tag, a length of up to four bytes of 7 bits, its body. */
function readDescriptor(view: DataView, at: number): Descriptor {
  let size = 0;
  let offset = at + 1;
  for (let i = 0; i < 4; i++) {
    const byte = view.getUint8(offset++);
    size = (size << 7) | (byte & 0x7f);
    if (byte < 0x80) break;
  }
  const length = Math.min(size, view.byteLength - offset);
  return { tag: view.getUint8(at), body: new DataView(view.buffer, view.byteOffset + offset, length) };
}

/** Object type and AudioSpecificConfig of an `esds` box. */
function readEsds(esds: DataView): { readonly type: number; readonly config: Uint8Array } | undefined {
  const es = readDescriptor(esds, 4);
  if (es.tag !== ES) return undefined;
  const flags = es.body.getUint8(2);
  let at = 3 + (flags & 0x80 ? 2 : 0);
  if (flags & 0x40) at += 1 + es.body.getUint8(at);
  if (flags & 0x20) at += 2;
  const decoder = readDescriptor(es.body, at);
  if (decoder.tag !== DECODER_CONFIG) return undefined;
  const type = decoder.body.getUint8(0);
  if (decoder.body.byteLength <= 13) return { type, config: new Uint8Array(0) };
  const info = readDescriptor(decoder.body, 13);
  if (info.tag !== SPECIFIC_INFO) return { type, config: new Uint8Array(0) };
  const { buffer, byteOffset, byteLength } = info.body;
  return { type, config: new Uint8Array(buffer, byteOffset, byteLength).slice() };
}

/** Makes an OpusHead (RFC 7845 §5.1, little-endian) of a `dOps` box (big-endian, version 0). */
export function opusHeadOf(dops: DataView): Uint8Array {
  const head = new Uint8Array(8 + dops.byteLength);
  head.set(new TextEncoder().encode('OpusHead'));
  head.set(new Uint8Array(dops.buffer, dops.byteOffset, dops.byteLength), 8);
  const view = new DataView(head.buffer);
  view.setUint8(8, 1);
  view.setUint16(10, dops.getUint16(2), true);
  view.setUint32(12, dops.getUint32(4), true);
  view.setInt16(16, dops.getInt16(8), true);
  return head;
}

/** Returns the codec of a track, or the name of one that is not decoded. */
export function readMp4Codec({ entry, details, start, timescale }: Mp4Track): Track | { readonly found: string } {
  const container = 'MP4';
  const find = (type: string) => details.find((box) => box.type === type)?.body;
  // The pre-skip of Opus is in its header, and the edit list repeats it.
  const dops = find('dOps');
  if (entry === 'Opus' && dops) return { codec: 'opus', container, config: opusHeadOf(dops), skipSeconds: 0 };
  const esds = find('esds');
  const read = entry === 'mp4a' && esds ? readEsds(esds) : undefined;
  if (!read) return { found: `${otherEntries[entry] ?? `'${entry.replace(/[^\x20-\x7e]/g, '?')}'`} in MP4` };
  if (!aacTypes.has(read.type)) {
    return { found: `${otherTypes[read.type] ?? `MPEG object type ${read.type}`} in MP4` };
  }
  return { codec: 'aac', container, config: read.config, skipSeconds: timescale > 0 ? start / timescale : 0 };
}
