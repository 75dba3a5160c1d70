import { OggOpusDecoder } from 'ogg-opus-decoder';
import { refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import { RECORDING_CHANNELS_MAX } from '../../../../shared/speech/wav.ts';
import { MODEL_RATE } from './mono.ts';
import { createOggGuard } from './ogg.ts';
import { blocksOf, decoded, nothingDecoded, sampleCount } from './package-decoder.ts';
import type { SoundDecoder } from './sound-decoder.ts';

/** Offset of OpusHead's channel count (RFC 7845 §5.1) in a first page with one lacing value. */
const CHANNELS_AT = 28 + 9;

/**
 * Ogg Opus by libopus, which decodes to the model's rate by itself. Its package decodes page by page: 255 packets of
 * 120 ms are 30 s, of at least 790 bytes, so that no slice ends two such pages. The guard keeps the stream single.
 */
export async function openOpus(): Promise<SoundDecoder> {
  // The option is documented by the package but missing from its type.
  const options: object = { sampleRate: MODEL_RATE };
  const decoder = new OggOpusDecoder(options);
  await decoder.ready;
  const ogg = createOggGuard();
  let samples = 0;
  let started = false;
  return {
    sliceBytes: 512,
    async *push(slice) {
      if (!started && (slice[CHANNELS_AT] ?? 0) > RECORDING_CHANNELS_MAX) {
        return yield no(refuse('audio_unsupported', undefined, `opus, ${slice[CHANNELS_AT]} channels`));
      }
      started = true;
      const pages = ogg.push(slice);
      if (!pages.ok) return yield pages;
      const block = await decoded(() => decoder.decode(slice));
      samples += sampleCount(block);
      yield* blocksOf(block);
    },
    async *finish() {
      const whole = ogg.finish();
      if (!whole.ok) return yield whole;
      const rest = await decoded(() => decoder.flush());
      samples += sampleCount(rest);
      if (samples === 0) yield nothingDecoded;
      else if (rest.ok) yield* blocksOf(rest);
    },
    free: () => decoder.free(),
  };
}
