import { MPEGDecoder } from 'mpg123-decoder';
import { refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import { createMp3Walk } from './mp3-frames.ts';
import { blocksOf, decoded, nothingDecoded, sampleCount } from './package-decoder.ts';
import type { SoundDecoder } from './sound-decoder.ts';

const strays = no(refuse('audio_invalid', { rule: 'much of it is no MP3 frame' }));

/**
 * MPEG layer III by mpg123. A frame of 24 bytes holds at most 1152 samples, so a slice unpacks to under 3 s.
 * Mono files come out as two equal channels. MP3 has no length in its header: a file that was cut between two frames is
 * a shorter recording.
 */
export async function openMp3(): Promise<SoundDecoder> {
  const decoder = new MPEGDecoder();
  await decoder.ready;
  const walk = createMp3Walk();
  let samples = 0;
  return {
    sliceBytes: 1_024,
    async *push(slice) {
      walk.push(slice);
      // The frames before it would look like the whole recording.
      if (walk.tooMuch()) return yield strays;
      const block = await decoded(() => decoder.decode(slice));
      samples += sampleCount(block);
      yield* blocksOf(block);
    },
    async *finish() {
      if (samples === 0) yield nothingDecoded;
      else if (walk.strays()) yield strays;
      else if (walk.endsInsideFrame()) yield no(refuse('audio_truncated', undefined, 'mp3 frame'));
    },
    free: () => decoder.free(),
  };
}
