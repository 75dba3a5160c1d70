import { limits } from '../../../../shared/limits.ts';

/**
 * A8: how long a stream lets the engine take for one step. Doubles with each stall and halves with each utterance that
 * went without one: an engine that is slow and not stuck gets its time, and not the same work again and again.
 */
export interface StallLimit {
  readonly ms: number;
  /** Whether the utterance at hand has stalled. */
  readonly stalled: boolean;
}

export const firstLimit: StallLimit = { ms: limits.streamStallMs.value, stalled: false };

export function afterStall({ ms }: StallLimit): StallLimit {
  return { ms: Math.min(ms * 2, limits.streamStallMaxMs.value), stalled: true };
}

export function afterUtterance({ ms, stalled }: StallLimit): StallLimit {
  return { ms: stalled ? ms : Math.max(ms / 2, limits.streamStallMs.value), stalled: false };
}

/** Milliseconds until an engine that failed `failures` times in a row is asked again. */
export function pauseAfter(failures: number): number {
  return Math.min(limits.streamPauseMs.value * 2 ** (failures - 1), 1_000);
}
