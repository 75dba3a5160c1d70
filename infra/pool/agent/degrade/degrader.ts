import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import { advance, beginDegrade, type Level, note, type QueueOutcome } from './degrade.ts';

/** The level of an agent, which follows from the outcomes of its queue. */
export interface Degrader {
  note(name: RequestClass, outcome: QueueOutcome): void;
  level(): Level;
}

export interface DegraderOptions {
  readonly now: () => number;
  /** Length of a window, ms; 0 keeps level 0. */
  readonly windowMs: number;
  /** Called after each change of the level. */
  readonly onMoved: (from: Level, to: Level) => void;
}

/** Creates a degrader at level 0. It has no timer: both methods close the windows that have ended. */
export function createDegrader({ now, windowMs, onMoved }: DegraderOptions): Degrader {
  if (windowMs === 0) return { note: () => {}, level: () => 0 };
  let state = beginDegrade(now(), windowMs);
  function catchUp() {
    const from = state.level;
    state = advance(state, now(), windowMs);
    if (state.level !== from) onMoved(from, state.level);
  }
  return {
    note(name, outcome) {
      catchUp();
      state = note(state, name, outcome);
    },
    level() {
      catchUp();
      return state.level;
    },
  };
}
