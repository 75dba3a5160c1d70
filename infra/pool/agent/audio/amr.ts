import { decoder as openDecoder } from '@audio/decode-amr';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { blocksOf, decoded, nothingDecoded } from './package-decoder.ts';
import type { SoundDecoder } from './sound-decoder.ts';

/** Bytes of a frame by its type, header included (RFC 4867 §5.3); 0 for types that are reserved. */
const formats = [
  { rate: 8_000, magic: '#!AMR\n', frames: [13, 14, 16, 18, 20, 21, 27, 32, 6, 0, 0, 0, 0, 0, 0, 1] },
  { rate: 16_000, magic: '#!AMR-WB\n', frames: [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 0, 0, 0, 0, 1, 1] },
] as const;

/** Bits of a frame's header that are zero. */
const PADDING = 0x83;

const FRAMES_PER_S = 50;

/** Decoded frames of one gap in the data: 1 s. The decoder mutes a gap sooner (TS 26.091, 26.191). */
const GAP_FRAMES = FRAMES_PER_S;

/** Bytes of a slice that are decoded, or that stand for a frame of silence each. */
interface Part {
  readonly isSilent: boolean;
  bytes: Uint8Array;
}

/**
 * Walks the frames of a file ahead of its decoder, which loops on reserved frame types. Marks frames without data
 * past `GAP_FRAMES` as silent: each is one byte and costs as much to decode as speech. Holds the place in one frame.
 */
function createGuard(frames: readonly number[], headBytes: number) {
  /** Bytes of the head or the open frame still to come. */
  let left = headBytes;
  /** Frames without data since the last one with data. */
  let gap = 0;
  return {
    push(slice: Uint8Array): Result<readonly Part[]> {
      const parts: Part[] = [];
      let start = 0;
      for (let at = 0; at < slice.length; ) {
        const head = slice[at] ?? 0;
        if (left === 0) {
          left = head & PADDING ? 0 : (frames[(head >> 3) & 15] ?? 0);
          gap = left === 1 ? gap + 1 : 0;
        }
        if (left === 0) return no(refuse('audio_invalid', { rule: 'its frames do not follow each other' }));
        const isSilent = gap > GAP_FRAMES;
        const step = Math.min(left, slice.length - at);
        const last = parts.at(-1);
        if (last?.isSilent === isSilent) last.bytes = slice.subarray(start, at + step);
        else {
          start = at;
          parts.push({ isSilent, bytes: slice.subarray(at, at + step) });
        }
        left -= step;
        at += step;
      }
      return ok(parts);
    },
    finish: (): Result<undefined> =>
      left === 0 ? ok(undefined) : no(refuse('audio_truncated', undefined, 'amr frame')),
  };
}

const silence = (frames: number, sampleRate: number) => ({
  channelData: [new Float32Array(frames * (sampleRate / FRAMES_PER_S))],
  sampleRate,
});

/** AMR files of one channel (RFC 4867 §5.1) by opencore-amr. Frames are 20 ms, of silence a byte each. */
export async function openAmr(start: Uint8Array): Promise<SoundDecoder> {
  const head = String.fromCharCode(...start.subarray(0, 16));
  const format = formats.find(({ magic }) => head.startsWith(magic));
  const decoder = await openDecoder();
  const guard = createGuard(format?.frames ?? [], format?.magic.length ?? 0);
  let isEmpty = true;
  return {
    // 128 frames without data are 2.6 s.
    sliceBytes: 128,
    async *push(slice) {
      if (!format) return yield no(refuse('audio_unsupported', { found: 'AMR of several channels' }));
      const parts = guard.push(slice);
      if (!parts.ok) return yield parts;
      for (const { isSilent, bytes } of parts.value) {
        const block = await decoded(() => {
          const sound = isSilent ? silence(bytes.length, format.rate) : decoder.decode(bytes);
          const { channelData, sampleRate } = sound;
          return { channelData, sampleRate, samplesDecoded: channelData[0]?.length ?? 0 };
        });
        if (block.ok && block.value) isEmpty = false;
        yield* blocksOf(block);
      }
    },
    async *finish() {
      const whole = guard.finish();
      if (!whole.ok) yield whole;
      else if (isEmpty) yield nothingDecoded;
    },
    free: () => decoder.free(),
  };
}
