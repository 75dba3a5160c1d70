import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';

// Splits a native FLAC stream (RFC 9639) into frames. The parser that comes with the decoder package loses the last
// frame of some files and searches damaged ones in quadratic time; this one checks each byte once.

export const STREAMINFO_BYTES = 34;
/** `fLaC` and one block header. */
const PREAMBLE_BYTES = 8;
/** Longest frame header: sync 2, codes 2, coded number 7, block size 2, rate 2, CRC 1. */
const HEADER_BYTES = 16;

const table = (bits: 8 | 16, polynomial: number) =>
  Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << (bits - 8);
    for (let i = 0; i < 8; i++) crc = crc & (1 << (bits - 1)) ? (crc << 1) ^ polynomial : crc << 1;
    return crc & (2 ** bits - 1);
  });
const crc8Table = table(8, 0x07);
const crc16Table = table(16, 0x8005);

const crc8 = (bytes: Uint8Array) => bytes.reduce((crc, byte) => crc8Table[crc ^ byte] as number, 0);
const crc16 = (crc: number, byte: number) => ((crc << 8) & 0xffff) ^ (crc16Table[(crc >> 8) ^ byte] as number);

export interface StreamInfo {
  readonly rate: number;
  readonly channels: number;
  readonly bits: number;
  /** Samples per channel; 0 when the writer did not know. */
  readonly total: number;
  /** Bytes of the longest frame there may be. */
  readonly frameBytes: number;
  /** Signature and this block alone, for the decoder. */
  readonly bytes: Uint8Array;
}

export function readStreamInfo(block: Uint8Array): StreamInfo {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  const packed = view.getUint32(10);
  const channels = ((packed >> 9) & 7) + 1;
  const bits = ((packed >> 4) & 31) + 1;
  const most = view.getUint16(2);
  return {
    rate: packed >>> 12,
    channels,
    bits,
    total: (packed & 15) * 2 ** 32 + view.getUint32(14),
    // Stored as it is, with the side channel's extra bit, is the worst a frame can be (§9.2).
    frameBytes: HEADER_BYTES + 2 + channels * (2 + Math.ceil((most * (bits + 1)) / 8)),
    bytes: Uint8Array.of(...new TextEncoder().encode('fLaC'), 0x80, 0, 0, STREAMINFO_BYTES, ...block),
  };
}

/** Bytes of the frame header at the front, 0 when there is none (§9.1), undefined when more bytes could tell. */
export function frameHeaderBytes(bytes: Uint8Array): number | undefined {
  const [sync = 0, strategy = 0, codes = 0, layout = 0, number = 0] = bytes;
  if (bytes.length < 5) return undefined;
  if (sync !== 0xff || (strategy & 0xfe) !== 0xf8) return 0;
  const [blockCode, rateCode] = [codes >> 4, codes & 15];
  if (blockCode === 0 || rateCode === 15 || layout >> 4 > 10 || (layout & 1) !== 0) return 0;
  const coded = number < 0x80 ? 1 : Math.clz32(~(number << 24));
  if (coded > 7 || (number >= 0x80 && coded < 2)) return 0;
  const blockBytes = blockCode === 6 ? 1 : blockCode === 7 ? 2 : 0;
  const rateBytes = rateCode === 12 ? 1 : rateCode === 13 || rateCode === 14 ? 2 : 0;
  const length = 4 + coded + blockBytes + rateBytes + 1;
  if (bytes.length < length) return undefined;
  return crc8(bytes.subarray(0, length)) === 0 ? length : 0;
}

export interface FlacFrames {
  /** Whole frames in the bytes so far. */
  push(bytes: Uint8Array): Result<Uint8Array[]>;
  /** The last frame, which only the end of the file ends. */
  finish(): Result<Uint8Array[]>;
  info(): StreamInfo | undefined;
}

const damaged = () => no(refuse('audio_invalid', { rule: 'its frames are damaged' }));

/** Returns a buffer with `bytes` behind the first `length` of `held`: the same one while it has room for them. */
function append(held: Uint8Array<ArrayBuffer>, length: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = length + bytes.length;
  const roomy = whole > held.length ? new Uint8Array(2 * whole) : held;
  if (roomy !== held) roomy.set(held.subarray(0, length));
  roomy.set(bytes, length);
  return roomy;
}

export function createFlacFrames(): FlacFrames {
  let held = new Uint8Array(4_096);
  let length = 0;
  let info: StreamInfo | undefined;
  /** Bytes of metadata still to be skipped. */
  let skip = 0;
  let inFrames = false;
  /** How far the frame at the front was checked, and its CRC up to there. */
  let checked = 0;
  let crc = 0;

  function remove(count: number) {
    held.copyWithin(0, count, length);
    length -= count;
  }

  /** One metadata block; false when more bytes are needed. */
  function readMetadata(): Result<boolean> {
    if (skip > 0) {
      const part = Math.min(skip, length);
      remove(part);
      skip -= part;
      return ok(skip === 0);
    }
    const start = info ? 0 : 4;
    if (length < start + 4) return ok(false);
    const [head = 0, high = 0, middle = 0, low = 0] = held.subarray(start, start + 4);
    const size = (high << 16) | (middle << 8) | low;
    if (!info) {
      if ((head & 0x7f) !== 0 || size !== STREAMINFO_BYTES) return damaged();
      if (length < PREAMBLE_BYTES + size) return ok(false);
      info = readStreamInfo(held.slice(PREAMBLE_BYTES, PREAMBLE_BYTES + size));
      remove(PREAMBLE_BYTES + size);
    } else {
      skip = size;
      remove(4);
    }
    if (head & 0x80) inFrames = true;
    return ok(true);
  }

  /** The frame at the front if its end is known. `last`: nothing follows the bytes that are held. */
  function nextFrame(last: boolean): Result<Uint8Array | undefined> {
    const own = frameHeaderBytes(held.subarray(0, Math.min(length, HEADER_BYTES)));
    if (own === undefined) return ok(undefined);
    if (own === 0) return damaged();
    for (; checked < length; checked++) {
      // A frame ends where its CRC comes out as 0 and the header of the next one stands.
      if (crc === 0 && checked > own && held[checked] === 0xff) {
        const next = frameHeaderBytes(held.subarray(checked, Math.min(length, checked + HEADER_BYTES)));
        if (next === undefined && !last) return ok(undefined);
        if (next) return ok(cut());
      }
      crc = crc16(crc, held[checked] as number);
    }
    if (last && crc === 0) return ok(cut());
    return info && length > info.frameBytes + HEADER_BYTES ? damaged() : ok(undefined);
  }

  function cut(): Uint8Array {
    const frame = held.slice(0, checked);
    remove(checked);
    checked = 0;
    crc = 0;
    return frame;
  }

  function frames(last: boolean): Result<Uint8Array[]> {
    const found: Uint8Array[] = [];
    while (!inFrames || skip > 0) {
      const read = readMetadata();
      if (!read.ok) return read;
      if (!read.value) return ok(found);
    }
    while (length > 0) {
      const frame = nextFrame(last);
      if (!frame.ok) return frame;
      if (!frame.value) break;
      found.push(frame.value);
    }
    return ok(found);
  }

  return {
    push(bytes) {
      held = append(held, length, bytes);
      length += bytes.length;
      return frames(false);
    },
    finish() {
      const rest = frames(true);
      // A tag behind the last frame is no sound; anything else that is left is a part of a frame.
      const isTag = String.fromCharCode(...held.subarray(0, 3)) === 'TAG';
      if (rest.ok && length > 0 && !isTag) return no(refuse('audio_truncated', undefined, 'flac frame'));
      return rest;
    },
    info: () => info,
  };
}
