import type { SoundFormat } from '../../../../../shared/speech/format.ts';
import { MODEL_RATE } from '../../audio/mono.ts';

// Advice to the owner of a recording (M6). Remarks, never a refusal.

/** Names of the remarks, as they stand in the metadata of an outcome. */
export type Advice = 'lossy' | 'rate_low' | 'resampled' | 'clipped' | 'no_speech';

const lossless: ReadonlySet<SoundFormat> = new Set<SoundFormat>(['wav', 'aiff', 'flac']);

/** Samples of one look at the spectrum: 16 ms. */
const FRAME = 256;
/** One look in so many samples: a quarter of a second. */
const EVERY = MODEL_RATE / 4;
/** Frames quieter than this say nothing about the band: mean square of -50 dB of full scale. */
const LEAST_POWER = 1e-5;
/** Looks that are enough to judge by: a second of sound. */
const LEAST_LOOKS = 4;
/**
 * Speech has a hundredth to a thousandth of its power above 4.5 kHz. Below this share nothing is there but rounding: the
 * recording went through a telephone or a rate of 8 kHz and was converted up again, which brings nothing back.
 */
const TELEPHONE_SHARE = 1e-5;
const bin = (hz: number) => Math.round((hz * FRAME) / MODEL_RATE);
const UPPER = [bin(4_500), bin(7_000)] as const;
const WHOLE = [bin(200), bin(7_000)] as const;

/** Share of samples at full scale from which on a recording was too loud: one in a thousand. */
const CLIPPED_SHARE = 1e-3;
const FULL_SCALE = 0.999;

const window = Float64Array.from({ length: FRAME }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / FRAME));
const cosines = Float64Array.from({ length: FRAME }, (_, i) => Math.cos((2 * Math.PI * i) / FRAME));

/** Adds the power spectrum of a frame to `sums`, bins of `WHOLE` only. A plain sum: four a second cost nothing. */
function addSpectrum(frame: Float32Array, sums: Float64Array) {
  for (let k = WHOLE[0]; k <= WHOLE[1]; k++) {
    let re = 0;
    let im = 0;
    for (let i = 0; i < FRAME; i++) {
      const value = (frame[i] ?? 0) * (window[i] ?? 0);
      re += value * (cosines[(k * i) % FRAME] ?? 0);
      im += value * (cosines[(k * i + FRAME / 4) % FRAME] ?? 0);
    }
    sums[k] = (sums[k] ?? 0) + re * re + im * im;
  }
}

const between = (sums: Float64Array, [from, to]: readonly [number, number]) =>
  sums.subarray(from, to + 1).reduce((sum, power) => sum + power, 0);

/** Listens to a recording at 16 kHz for what can be said of it. Portions may be of any size. */
export function createAdviser() {
  const sums = new Float64Array(FRAME / 2);
  const frame = new Float32Array(FRAME);
  let received = 0;
  let looks = 0;
  let loud = 0;

  function look() {
    if (frame.reduce((sum, sample) => sum + sample * sample, 0) / FRAME < LEAST_POWER) return;
    looks++;
    addSpectrum(frame, sums);
  }

  return {
    push(samples: Float32Array) {
      for (let i = 0; i < samples.length; i++) {
        const sample = samples[i] as number;
        if (sample >= FULL_SCALE || sample <= -FULL_SCALE) loud++;
      }
      for (let at = 0; at < samples.length; ) {
        const place = (received + at) % EVERY;
        const part = samples.subarray(at, at + (place < FRAME ? FRAME : EVERY) - place);
        at += part.length;
        if (place >= FRAME) continue;
        frame.set(part, place);
        if (place + part.length === FRAME) look();
      }
      received += samples.length;
    },
    /**
     * Returns the advice for a whole recording, always in the same order. `rate` is the file's own, in Hz.
     */
    advise({ format, rate }: { format: SoundFormat | undefined; rate: number }): Advice[] {
      const telephone = looks >= LEAST_LOOKS && between(sums, UPPER) < TELEPHONE_SHARE * between(sums, WHOLE);
      return [
        ...(format && !lossless.has(format) ? (['lossy'] as const) : []),
        ...(rate < MODEL_RATE ? (['rate_low'] as const) : []),
        ...(rate >= MODEL_RATE && telephone ? (['resampled'] as const) : []),
        ...(received > 0 && loud / received > CLIPPED_SHARE ? (['clipped'] as const) : []),
      ];
    },
  };
}
