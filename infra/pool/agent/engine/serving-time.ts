/** Window of the mean service time in a report. */
const SERVICE_WINDOW_MS = 10_000;
/** Stored service times; a busier agent averages over a little less time. */
const SERVICE_SAMPLES_MAX = 1_024;

/** Mean of what happened in the last seconds (`SERVICE_WINDOW_MS`). */
export function createServiceTime(now: () => number) {
  let samples: { at: number; milliseconds: number }[] = [];
  return {
    add(milliseconds: number) {
      samples.push({ at: now(), milliseconds });
      if (samples.length > SERVICE_SAMPLES_MAX) samples = samples.slice(-SERVICE_SAMPLES_MAX / 2);
    },
    /** Milliseconds; 0 when nothing happened. */
    mean(): number {
      const from = now() - SERVICE_WINDOW_MS;
      samples = samples.filter(({ at }) => at >= from);
      return samples.length === 0
        ? 0
        : samples.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / samples.length;
    },
  };
}
