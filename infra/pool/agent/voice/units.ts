import { UNIT_SAMPLES } from './detect.ts';

/** Sound up to this long is kept for the sake of a unit in it; of more, a unit would hold too much for its own length. */
const SHARED_SAMPLES = 4 * UNIT_SAMPLES;

/**
 * Sound in pieces of any length as units of `UNIT_SAMPLES`. `owned`: nobody changes a piece afterwards, so a unit that
 * lies whole in a short one is a window into it.
 */
export function createUnits(owned: boolean) {
  let unit = new Float32Array(UNIT_SAMPLES);
  let filled = 0;
  return {
    /** The units that are whole with these samples. */
    push(samples: Float32Array): Float32Array[] {
      const shared = owned && samples.length <= SHARED_SAMPLES;
      const whole: Float32Array[] = [];
      for (let at = 0; at < samples.length; ) {
        const part = samples.subarray(at, at + UNIT_SAMPLES - filled);
        at += part.length;
        if (shared && part.length === UNIT_SAMPLES) {
          whole.push(part);
          continue;
        }
        unit.set(part, filled);
        filled += part.length;
        if (filled < UNIT_SAMPLES) break;
        filled = 0;
        whole.push(unit);
        unit = new Float32Array(UNIT_SAMPLES);
      }
      return whole;
    },
    /** Samples behind the last whole unit. */
    rest: () => unit.slice(0, filled),
    /** Forgets those. */
    clear() {
      filled = 0;
    },
  };
}
