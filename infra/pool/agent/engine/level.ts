import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';

/** A queue at the engine that requests of a model wait in: its own, or that of a step. */
export interface EngineQueue {
  /** The model that keeps the queue. */
  readonly model: string;
  /** Its priority levels, 1 the most urgent; 0 when all who wait in it are equal. */
  readonly levels: number;
}

/**
 * The levels that all queues on the way of a request have. An ensemble hands one priority to all of its steps, and where
 * that is beyond the last level it counts as the step's default, which may be the first. 0: no queue has any.
 */
export function commonLevels(queues: readonly EngineQueue[]): number {
  const levels = queues.flatMap((queue) => (queue.levels > 0 ? [queue.levels] : []));
  return levels.length > 0 ? Math.min(...levels) : 0;
}

/**
 * Returns the priority level of a class among `levels`; 0 when there are none. With fewer levels than
 * classes, neighbours share one; no class ever comes before a more urgent one. `requested` may name a later level,
 * but none beyond the last.
 */
export function levelOf(name: RequestClass, levels: number, requested = 0): number {
  const own = Math.ceil(((classes.indexOf(name) + 1) * Math.min(levels, classes.length)) / classes.length);
  return Math.min(Math.max(own, requested), levels);
}
