/** How far back the mean service time of a heartbeat looks. */
const WINDOW_MS = 10_000;
/** Samples kept; busier agents average over a little less time. */
const MOST = 1_024;

/** Mean of what happened in the last ten seconds. */
export function createServiceTime(now: () => number) {
  let samples: { at: number; milliseconds: number }[] = [];
  return {
    add(milliseconds: number) {
      samples.push({ at: now(), milliseconds });
      if (samples.length > MOST) samples = samples.slice(-MOST / 2);
    },
    /** Milliseconds; 0 when nothing happened. */
    mean(): number {
      const from = now() - WINDOW_MS;
      samples = samples.filter(({ at }) => at >= from);
      return samples.length === 0
        ? 0
        : samples.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / samples.length;
    },
  };
}
