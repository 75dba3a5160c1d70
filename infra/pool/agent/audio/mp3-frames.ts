// Walks the frame headers of an MPEG layer III file (ISO/IEC 11172-3 §2.4.2.3) beside its decoder, which does not tell
// whether the last frame was whole, nor what it has left out.
import { KiB } from '../../../../shared/bytes.ts';

/**
 * Bytes of an MP3 outside frames, tags and padding: damage of a few seconds; with more it is not the intended
 * recording.
 */
const MP3_STRAY_BYTES = 64 * KiB;
/** Share of such bytes in a short file. */
const MP3_STRAY_SHARE = 0.125;

const HEADER_BYTES = 4;
/** kbit/s by bitrate index: MPEG-1, and MPEG-2 with 2.5 (ISO/IEC 13818-3 §2.4.2.3). */
const bitrates = {
  one: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  two: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;
const rates = [44_100, 48_000, 32_000] as const;
/** Halves of the sampling rate by version: 2.5, reserved, 2, 1. */
const divisors = [4, 0, 2, 1] as const;
/** Frames in a row before a header is believed: four bytes alone come up by chance. */
const BELIEVED = 2;

/** Bytes of the frame that this header begins; 0 when it is no layer III header or one without a bitrate. */
export function mp3FrameBytes([sync = 0, kind = 0, codes = 0]: Uint8Array): number {
  const divisor = divisors[((kind >> 3) & 3) as 0 | 1 | 2 | 3];
  const rate = rates[(codes >> 2) & 3];
  if (sync !== 0xff || kind >> 5 !== 7 || ((kind >> 1) & 3) !== 1 || divisor === 0 || rate === undefined) return 0;
  const kilobits = bitrates[divisor === 1 ? 'one' : 'two'][codes >> 4] ?? 0;
  if (kilobits === 0) return 0;
  const bytesPerSecond = (divisor === 1 ? 144 : 72) * 1_000 * kilobits;
  return Math.floor(bytesPerSecond / (rate / divisor)) + ((codes >> 1) & 1);
}

/** The largest head of a tag. */
const TAG_HEAD_BYTES = 32;
/** A frame that begins before the file does, or that is damaged. */
const STRAY_FREE_BYTES = 2_048;

/** How many bytes the head of a tag that begins so takes; 0 when none does. ID3v2, APEv2, and ID3v1 with what extends it. */
function tagHeadBytes(start: Uint8Array): number {
  const word = String.fromCharCode(...start);
  if (word.startsWith('ID3')) return 10;
  return word === 'APET' ? TAG_HEAD_BYTES : word.startsWith('TAG') ? HEADER_BYTES : 0;
}

/** How many bytes of a tag follow its head. */
function tagBytes(head: Uint8Array): number {
  const at = (i: number) => head[i] ?? 0;
  if (at(0) === 0x49) return at(6) * 2 ** 21 + at(7) * 2 ** 14 + at(8) * 2 ** 7 + at(9);
  if (at(0) === 0x54) return (at(3) === 0x2b ? 227 : 128) - HEADER_BYTES;
  // Only in its head, not in its foot, bit 29 of the flags is set.
  const isHead = (at(23) & 0x20) !== 0;
  return isHead ? new DataView(head.buffer, head.byteOffset).getUint32(12, true) : 0;
}

/**
 * Follows the frames as the bytes arrive, holding one header. Out of step it looks for the next header; what it leaves
 * out so, tags and zeros not counted, is sound that was there once, or something else.
 */
export function createMp3Walk() {
  const header = new Uint8Array(TAG_HEAD_BYTES);
  let filled = 0;
  let needed = HEADER_BYTES;
  /** Bytes of the current frame, or tag, still to come. */
  let left = 0;
  let isFrame = false;
  /** Whole frames that followed each other without a gap, up to here. */
  let frames = 0;
  let believed = false;
  let bytes = 0;
  let stray = 0;

  function leave(byte: number) {
    if (byte !== 0) stray++;
  }

  function readHeader() {
    const start = header.subarray(0, HEADER_BYTES);
    const length = mp3FrameBytes(start);
    const head = length > HEADER_BYTES ? 0 : tagHeadBytes(start);
    if (head > filled) {
      needed = head;
      return;
    }
    if (length > HEADER_BYTES || head > 0) {
      isFrame = head === 0;
      if (!isFrame) frames = 0;
      left = isFrame ? length - HEADER_BYTES : tagBytes(header);
      filled = 0;
    } else {
      frames = 0;
      leave(header[0] ?? 0);
      header.copyWithin(0, 1);
      filled = HEADER_BYTES - 1;
    }
    needed = HEADER_BYTES;
  }

  return {
    push(input: Uint8Array) {
      bytes += input.length;
      for (let at = 0; at < input.length; ) {
        if (left > 0) {
          const part = Math.min(left, input.length - at);
          left -= part;
          at += part;
          if (left > 0 || !isFrame) continue;
          frames++;
          believed ||= frames >= BELIEVED;
          continue;
        }
        header[filled++] = input[at++] ?? 0;
        if (filled === needed) readHeader();
      }
    },
    /** Whether the bytes end before a frame that follows others does. Tags and damage at the end are no frame. */
    endsInsideFrame: () => left > 0 && isFrame && frames >= BELIEVED,
    /** Whether no recording may have as much that is no frame, however long it is. */
    tooMuch: () => believed && stray > MP3_STRAY_BYTES,
    /** Whether so much is no frame that this is no whole recording. Of frames without a length nothing is known. */
    strays: () =>
      believed && (stray > MP3_STRAY_BYTES || (stray > STRAY_FREE_BYTES && stray > bytes * MP3_STRAY_SHARE)),
  };
}
