import { limits } from '../../../../shared/limits.ts';

/** Weight of the newest inference in the mean of its model. */
const SMOOTHING = 0.1;

/** How long an engine may say nothing, by the usual time of an inference; of a model that has answered none yet that is not known. */
export function silentAfter(usualMs: number | undefined): number {
  const { engineMs, engineSilentMs, engineSilentTimes } = limits;
  if (usualMs === undefined) return engineMs.value;
  return Math.min(Math.max(usualMs * engineSilentTimes.value, engineSilentMs.value), engineMs.value);
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
    /** Whether the engine was given up since then: who has waited for it so long would wait in vain. */
    lostSince: (at: number): boolean => lostAt >= at && lostAt >= answeredAt,
  };
}
