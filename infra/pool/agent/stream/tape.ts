import { UNIT_SAMPLES } from '../asr/vad/detect.ts';
import type { Sound } from '../audio/mono.ts';

/** Pooled buffers of 50 ms of sound, 26 MB in all, that streams reuse. */
const STREAM_SPARE_UNITS = 16_384;

const FULL_SCALE = 0x8000;
/** Scales a 16-bit sample to the model's -1 to 1; a power of two, so that multiplying with it is exact. */
export const SAMPLE_SCALE = 1 / FULL_SCALE;

/**
 * Free memory for units, of all streams. Speech lives for seconds, longer than a collector likes: left to it,
 * sound would be most of its work.
 */
const spare: Int16Array[] = [];

const takeSpare = () => spare.pop() ?? new Int16Array(UNIT_SAMPLES);

function putSpare(unit: Int16Array): void {
  if (spare.length < STREAM_SPARE_UNITS) spare.push(unit);
}

/** `samples` as 16 bits from `at` on; what is too loud is as loud as can be. */
function write(into: Int16Array, at: number, samples: Sound): void {
  if (samples instanceof Int16Array) {
    into.set(samples, at);
    return;
  }
  for (let i = 0; i < samples.length; i++) {
    const scaled = Math.round((samples[i] as number) * FULL_SCALE);
    into[at + i] = scaled > 0x7fff ? 0x7fff : scaled < -FULL_SCALE ? -FULL_SCALE : scaled;
  }
}

/**
 * The sound of a stream at 16 kHz, as units of `UNIT_SAMPLES`, numbered from its first one. A reader may use
 * a unit until `keep` says that no unit so far back is needed: its memory is then reused.
 */
export function createTape() {
  const units: Int16Array[] = [];
  /** Number of the first buffered unit. */
  let first = 0;
  let open = takeSpare();
  let filled = 0;

  return {
    /** Number of the unit that is being filled. */
    next: () => first + units.length,
    /** `onUnit` gets each unit that is whole with these samples, before the next one is. */
    push(samples: Sound, onUnit: (unit: Int16Array) => void): void {
      for (let at = 0; at < samples.length; ) {
        const count = Math.min(samples.length - at, UNIT_SAMPLES - filled);
        write(open, filled, count === samples.length ? samples : samples.subarray(at, at + count));
        at += count;
        filled += count;
        if (filled < UNIT_SAMPLES) return;
        const unit = open;
        units.push(unit);
        open = takeSpare();
        filled = 0;
        onUnit(unit);
      }
    },
    /** Samples behind the last whole unit, in memory of their own. */
    rest: () => open.slice(0, filled),
    /** Drops the samples of the open unit. */
    clear() {
      filled = 0;
    },
    /** Units before number `from` are not needed any more. */
    keep(from: number): void {
      const over = Math.min(from - first, units.length);
      if (over <= 0) return;
      for (const unit of units.splice(0, over)) putSpare(unit);
      first += over;
    },
  };
}
