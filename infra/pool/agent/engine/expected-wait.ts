import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import { PASSED_STARTS_MAX } from './queue.ts';

/**
 * Longest expected wait for a slot, ms, by class. Waits vary, and work that comes later may overtake: these are
 * half of what a caller accepts. A speaker notices a third of a second, a person who sent a recording waits some
 * seconds, programs give up after half a minute and jobs after minutes.
 */
export const EXPECTED_WAIT_MS_MAX: Readonly<Record<RequestClass, number>> = {
  realtime: 150,
  interactive: 2_500,
  default: 15_000,
  batch: 60_000,
};

/** State of the engine before a new utterance. */
export interface Backlog {
  /** Waiting utterances that start before it. */
  readonly ahead: number;
  readonly slots: number;
  readonly busy: number;
  /** Mean milliseconds that an utterance holds a slot; 0 when unknown. */
  readonly serviceMs: number;
  /** Slots that more urgent classes held of late, on average. */
  readonly urgentSlots: number;
}

/**
 * Returns the expected wait of a new utterance, ms. The slots that more urgent classes leave serve it and those
 * ahead of it, at least the share that no class loses (`PASSED_STARTS_MAX`).
 */
export function expectedWaitMs({ ahead, slots, busy, serviceMs, urgentSlots }: Backlog): number {
  const starts = ahead + 1 - Math.max(0, slots - busy);
  const left = Math.max(slots - urgentSlots, slots / (PASSED_STARTS_MAX + 1));
  return (Math.max(0, starts) * serviceMs) / left;
}

/** Reports whether a new utterance of the class waits too long. The next to start never does: engines may be slow. */
export const waitsTooLong = (name: RequestClass, backlog: Backlog): boolean =>
  backlog.ahead > 0 && expectedWaitMs(backlog) > EXPECTED_WAIT_MS_MAX[name];
