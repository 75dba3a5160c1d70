import { STREAM_PAUSE_MS } from './limits.ts';

/** Wait for one step after which a stream's sequence is rebuilt from its buffer (A8). */
export const STREAM_STALL_MS = 200;
/**
 * Longest wait for a step, doubled with each stall of its stream: a slow engine does not get ever more
 * requests.
 */
const STREAM_STALL_MAX_MS = 3_200;

/**
 * A8: how long a stream lets the engine take for one step. Doubles with each stall and halves with each utterance that
 * went without one: an engine that is slow and not stuck gets its time, and not the same work again and again.
 */
export interface StallLimit {
  readonly ms: number;
  /** Whether the utterance at hand has stalled. */
  readonly stalled: boolean;
}

export const firstLimit: StallLimit = { ms: STREAM_STALL_MS, stalled: false };

export function afterStall({ ms }: StallLimit): StallLimit {
  return { ms: Math.min(ms * 2, STREAM_STALL_MAX_MS), stalled: true };
}

export function afterUtterance({ ms, stalled }: StallLimit): StallLimit {
  return { ms: stalled ? ms : Math.max(ms / 2, STREAM_STALL_MS), stalled: false };
}

/** Milliseconds until an engine that failed `failures` times in a row is asked again. */
export function pauseAfter(failures: number): number {
  return Math.min(STREAM_PAUSE_MS * 2 ** (failures - 1), 1_000);
}
