import type { SoundBlock } from '../../../../shared/speech/format.ts';
import { createResampler, type Resampler } from './resample.ts';

/** Samples per second that every model gets. */
export const MODEL_RATE = 16_000;

/** Samples of one channel: between -1 and 1, or in 16 bits. */
export type Sound = Float32Array | Int16Array;

/** Mean of the channels. */
export function mixDown(channels: readonly Float32Array[]): Float32Array {
  const [first, ...others] = channels;
  if (!first || others.length === 0) return first ?? new Float32Array(0);
  const mixed = first.slice();
  for (const other of others) for (let i = 0; i < mixed.length; i++) mixed[i] = (mixed[i] ?? 0) + (other[i] ?? 0);
  return mixed.map((sample) => sample / channels.length);
}

/**
 * Turns decoded blocks into one channel at `MODEL_RATE`, a narrow one with half the band. A rate that changes midway
 * starts a new filter.
 */
export function createMono(isNarrow = false) {
  let resampler: Resampler | undefined;
  let rate = 0;
  /** Samples at the current rate, and the seconds of those before it. */
  let samples = 0;
  let before = 0;
  return {
    push(block: SoundBlock): Float32Array[] {
      const out: Float32Array[] = [];
      if (resampler && block.rate !== rate) out.push(resampler.finish());
      if (!resampler || block.rate !== rate) {
        before += rate > 0 ? samples / rate : 0;
        samples = 0;
        rate = block.rate;
        resampler = createResampler(rate, MODEL_RATE, 0, isNarrow);
      }
      const mono = mixDown(block.channels);
      samples += mono.length;
      out.push(resampler.push(mono));
      return out;
    },
    finish: (): Float32Array => resampler?.finish() ?? new Float32Array(0),
    /** Length of the recording so far, counted in samples. */
    seconds: () => before + (rate > 0 ? samples / rate : 0),
  };
}
