import { limits } from '../../../../shared/limits.ts';

/** Mean of what happened in the last seconds (`limits.serviceWindowMs`). */
export function createServiceTime(now: () => number) {
  let samples: { at: number; milliseconds: number }[] = [];
  return {
    add(milliseconds: number) {
      samples.push({ at: now(), milliseconds });
      if (samples.length > limits.serviceSamples.value) samples = samples.slice(-limits.serviceSamples.value / 2);
    },
    /** Milliseconds; 0 when nothing happened. */
    mean(): number {
      const from = now() - limits.serviceWindowMs.value;
      samples = samples.filter(({ at }) => at >= from);
      return samples.length === 0
        ? 0
        : samples.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / samples.length;
    },
  };
}
