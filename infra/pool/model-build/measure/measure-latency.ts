// Evidence "latency": time of a second of audio until LOG_PROBS at the engine, window by window, until
// windows agree.
import { type Evidence, isSteady } from '../../../../shared/registry/evidence.ts';
import { LIVE_QUANTILE } from '../../../../shared/registry/live-counts.ts';
import { ok } from '../../../../shared/result.ts';
import type { BuildResult } from '../problem.ts';
import { MEASURE_WINDOW_REQUESTS, MEASURE_WINDOWS_MAX } from './limits.ts';

export type Latency = Extract<Evidence, { kind: 'latency' }>;

/** A recording, cut as agents cut it. */
export interface Cut {
  readonly seconds: number;
  readonly utterances: readonly Float32Array[];
}

export interface LatencyTrial {
  /** Recordings, sent in turn and repeatedly: each window has the same ones. */
  readonly recordings: readonly Cut[];
  readonly infer: (utterance: Float32Array) => Promise<BuildResult<unknown>>;
  /** Concurrent callers. */
  readonly parallel: number;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Measures windows until they agree, at most `MEASURE_WINDOWS_MAX`. */
export async function measureWindows(trial: LatencyTrial): Promise<BuildResult<number[]>> {
  const windows: number[] = [];
  while (windows.length < MEASURE_WINDOWS_MAX && !isSteady(windows)) {
    const times = await measureWindow(trial);
    if (!times.ok) return times;
    windows.push(p95Of(times.value));
  }
  return ok(windows);
}

async function measureWindow({ recordings, infer, parallel, now }: LatencyTrial): Promise<BuildResult<number[]>> {
  const times: number[] = [];
  let next = 0;
  let failed: BuildResult<never> | undefined;
  const call = async () => {
    while (next < MEASURE_WINDOW_REQUESTS && !failed) {
      const { seconds, utterances } = recordings[next % recordings.length] as Cut;
      next += 1;
      const began = now();
      for (const utterance of utterances) {
        const answered = await infer(utterance);
        if (!answered.ok) failed = answered;
        if (failed) return;
      }
      // Counted as live traffic is: below a second of audio, the fixed cost of a request dominates.
      times.push((now() - began) / Math.max(1, seconds));
    }
  };
  await Promise.all(Array.from({ length: parallel }, call));
  return failed ?? ok(times);
}

/** Returns the 95th percentile: the smallest value that at least 95 % do not exceed. */
const p95Of = (times: readonly number[]): number => {
  const sorted = times.toSorted((one, other) => one - other);
  return sorted[Math.ceil(LIVE_QUANTILE * sorted.length) - 1] as number;
};
