import { decoder as openDecoder } from '@audio/decode-amr';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { blocksOf, decoded, nothingDecoded } from './package-decoder.ts';
import type { SoundDecoder } from './sound-decoder.ts';

/** Bytes of a frame by its type, header included (RFC 4867 §5.3); 0 for types that are reserved. */
const formats = [
  { name: 'AMR-NB', magic: '#!AMR\n', frames: [13, 14, 16, 18, 20, 21, 27, 32, 6, 0, 0, 0, 0, 0, 0, 1] },
  { name: 'AMR-WB', magic: '#!AMR-WB\n', frames: [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 0, 0, 0, 0, 1, 1] },
] as const;

/** Bits of a frame's header that are zero. */
const PADDING = 0x83;

/**
 * Walks the frames of a file ahead of its decoder, which would wait for ever behind a type that does not exist. Holds
 * the place in one frame.
 */
function createGuard(frames: readonly number[], headBytes: number) {
  /** Bytes of the head or the open frame still to come. */
  let left = headBytes;
  return {
    push(bytes: Uint8Array): Result<undefined> {
      for (let at = 0; at < bytes.length; ) {
        const head = bytes[at] ?? 0;
        if (left === 0) left = head & PADDING ? 0 : (frames[(head >> 3) & 15] ?? 0);
        if (left === 0) return no(refuse('audio_invalid', { rule: 'its frames do not follow each other' }));
        const step = Math.min(left, bytes.length - at);
        left -= step;
        at += step;
      }
      return ok(undefined);
    },
    finish: (): Result<undefined> =>
      left === 0 ? ok(undefined) : no(refuse('audio_truncated', undefined, 'amr frame')),
  };
}

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
      const frames = guard.push(slice);
      if (!frames.ok) return yield frames;
      const block = await decoded(() => {
        const { channelData, sampleRate } = decoder.decode(slice);
        return { channelData, sampleRate, samplesDecoded: channelData[0]?.length ?? 0 };
      });
      if (block.ok && block.value) isEmpty = false;
      yield* blocksOf(block);
    },
    async *finish() {
      const whole = guard.finish();
      if (!whole.ok) yield whole;
      else if (isEmpty) yield nothingDecoded;
    },
    free: () => decoder.free(),
  };
}
