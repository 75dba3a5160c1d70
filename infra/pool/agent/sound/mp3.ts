import { MPEGDecoder } from 'mpg123-decoder';
import { ok } from '../../../../shared/result.ts';
import type { SoundDecoder } from './decode.ts';
import { decoded, nothingDecoded, sampleCount } from './package-decoder.ts';

/**
 * MPEG layer III by mpg123. A frame of 24 bytes holds at most 1152 samples, so a slice unpacks to under 7 MB.
 * Mono files come out as two equal channels. MP3 has no length in its header: a cut file is a shorter recording.
 */
export async function openMp3(): Promise<SoundDecoder> {
  const decoder = new MPEGDecoder();
  await decoder.ready;
  let samples = 0;
  return {
    sliceBytes: 16_384,
    async push(slice) {
      const block = await decoded(() => decoder.decode(slice));
      samples += sampleCount(block);
      return block;
    },
    finish: async () => (samples > 0 ? ok(undefined) : nothingDecoded),
    free: () => decoder.free(),
  };
}
