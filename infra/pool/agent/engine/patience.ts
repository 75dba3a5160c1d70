import { ENGINE_MS } from '../settings/limits.ts';

/**
 * Silence after which a usually faster engine hangs: seven times a slow one's 20 s of audio, and a caller
 * reads a refusal within 8 s.
 */
export const ENGINE_SILENT_MS = 7_000;
/**
 * Silence as a multiple of a usual inference, where that is longer: the longest utterance takes some times
 * the usual. At most ENGINE_MS.
 */
export const ENGINE_SILENT_TIMES = 8;

/** Weight of the newest inference in the mean of its model. */
const SMOOTHING = 0.1;

/** Returns the limit of an engine's silence from the mean time of an inference; `undefined` before the first answer. */
export function silentAfter(usualMs: number | undefined): number {
  if (usualMs === undefined) return ENGINE_MS;
  return Math.min(Math.max(usualMs * ENGINE_SILENT_TIMES, ENGINE_SILENT_MS), ENGINE_MS);
}

/**
 * Tells an engine that hangs, and answers no request, from a slow one. The last answer to any request counts,
 * so that no request is failed while the engine works on others.
 */
export function createPatience(now: () => number) {
  const usual = new Map<string, number>();
  let answeredAt = Number.NEGATIVE_INFINITY;
  let lostAt = Number.NEGATIVE_INFINITY;

  return {
    /** Calls `giveUp` once the engine is taken to hang; gives what ends the watch. */
    watch(model: string, giveUp: () => void): () => void {
      const began = now();
      let timer: NodeJS.Timeout | undefined;
      const look = () => {
        const left = Math.max(began, answeredAt) + silentAfter(usual.get(model)) - now();
        if (left > 0) {
          timer = setTimeout(look, left);
          return;
        }
        lostAt = now();
        giveUp();
      };
      look();
      return () => clearTimeout(timer);
    },
    /** The engine has said something; `milliseconds` is what an inference took. */
    answered(model: string, milliseconds?: number): void {
      answeredAt = now();
      if (milliseconds === undefined) return;
      const before = usual.get(model) ?? milliseconds;
      usual.set(model, before + SMOOTHING * (milliseconds - before));
    },
    /** Reports whether the engine was given up since then, so that waiting longer is useless. */
    lostSince: (at: number): boolean => lostAt >= at && lostAt >= answeredAt,
  };
}
