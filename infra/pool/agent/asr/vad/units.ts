import { UNIT_SAMPLES } from './detect.ts';

/** Sound in pieces of any length as units of `UNIT_SAMPLES`. */
export function createUnits() {
  let unit = new Float32Array(UNIT_SAMPLES);
  let filled = 0;
  return {
    /** The units that are whole with these samples. */
    push(samples: Float32Array): Float32Array[] {
      const whole: Float32Array[] = [];
      for (let at = 0; at < samples.length; ) {
        const part = samples.subarray(at, at + UNIT_SAMPLES - filled);
        at += part.length;
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
  };
}
