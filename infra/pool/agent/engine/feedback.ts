import { MACRO_WINDOW_MS, MICRO_WINDOW_MS, type Windows } from './windows.ts';

/** Batch range of A24. */
export const BATCH_MIN = 16;
export const BATCH_MAX = 256;
/** Shortest window as a share of the longest: shorter ones gather nothing, and the timer's grain is 1 ms. */
export const SHARE_MIN = 1 / 8;
/** Use of the GPU above which longer batches pay, and below which they only delay. */
const GPU_HIGH = 0.9;
const GPU_LOW = 0.7;
/** Depth, as a share of the batch, below which the batch shrinks. Under a half, so that a step down never calls a step up. */
const SHALLOW = 1 / 4;

/** State of the feedback from the queue to the windows (A7). */
export interface Feedback {
  /** Window length as a share of the longest one, `SHARE_MIN` to 1. */
  readonly share: number;
  /** Utterances of one release, `BATCH_MIN` to `BATCH_MAX`. */
  readonly batch: number;
}

/** Inputs of the feedback (A33), of the last second. */
export interface Observation {
  /** Utterances that wait for a slot. */
  readonly depth: number;
  readonly requestsPerSecond: number;
  /** Use of the GPU, 0 to 1. Absent: not measured. */
  readonly gpu?: number | undefined;
}

export const noFeedback: Feedback = { share: SHARE_MIN, batch: BATCH_MIN };

/**
 * Returns the next state. A queue deeper than a batch, or a busy GPU, doubles window and batch; a shallow queue beside
 * an idle GPU halves them. Between both bounds nothing changes, so that a steady load meets a steady state. Where no
 * second request arrives within the longest window, waiting gathers nothing, and the state is the least.
 */
export function adjust({ share, batch }: Feedback, { depth, requestsPerSecond, gpu = 0 }: Observation): Feedback {
  const arrivals = (requestsPerSecond * MACRO_WINDOW_MS) / 1_000;
  if (arrivals < 2 && depth < BATCH_MIN) return noFeedback;
  const isDeep = depth > batch || gpu >= GPU_HIGH;
  const isShallow = depth < batch * SHALLOW && gpu < GPU_LOW;
  const factor = isDeep ? 2 : isShallow ? 1 / 2 : 1;
  return {
    share: Math.min(1, Math.max(SHARE_MIN, share * factor)),
    batch: Math.min(BATCH_MAX, Math.max(BATCH_MIN, batch * factor)),
  };
}

/** Returns the windows of a state. */
export const windowsOf = ({ share, batch }: Feedback): Windows => ({
  microMs: MICRO_WINDOW_MS * share,
  macroMs: MACRO_WINDOW_MS * share,
  batch,
});
