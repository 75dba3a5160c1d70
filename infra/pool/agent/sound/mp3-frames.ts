// Walks the frame headers of an MPEG layer III file (ISO/IEC 11172-3 §2.4.2.3) beside its decoder, which does not tell
// whether the last frame was whole.

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

/** Follows the frames as the bytes arrive, holding one header. Out of step it looks for the next header. */
export function createMp3Walk() {
  const header = new Uint8Array(HEADER_BYTES);
  let filled = 0;
  /** Bytes of the current frame still to come. */
  let left = 0;
  /** Whole frames that followed each other without a gap, up to here. */
  let frames = 0;

  return {
    push(bytes: Uint8Array) {
      for (let at = 0; at < bytes.length; ) {
        if (left > 0) {
          const part = Math.min(left, bytes.length - at);
          left -= part;
          at += part;
          if (left === 0) frames++;
          continue;
        }
        header[filled++] = bytes[at++] ?? 0;
        if (filled < HEADER_BYTES) continue;
        const length = mp3FrameBytes(header);
        if (length > HEADER_BYTES) {
          left = length - HEADER_BYTES;
          filled = 0;
        } else {
          frames = 0;
          header.copyWithin(0, 1);
          filled = HEADER_BYTES - 1;
        }
      }
    },
    /** Whether the bytes end before a frame that follows others does. Tags and damage at the end are no frame. */
    endsInsideFrame: () => left > 0 && frames >= BELIEVED,
  };
}
