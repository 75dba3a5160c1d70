import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';

/** Default length of a window. */
export const DEGRADE_WINDOW_MS = 30_000;
/** Windows in a row that move a pool by one level (A20). */
export const WINDOWS_IN_A_ROW = 3;
/** Longest wait for a slot that keeps the promise of a class, ms. Batch work has none. */
export const WAIT_MS: Readonly<Record<RequestClass, number>> = {
  realtime: 300,
  interactive: 1_000,
  default: 10_000,
  batch: Number.POSITIVE_INFINITY,
};
/** Share of missed utterances from which a window is bad, and up to which it is good; between both it is neither. */
const BAD_SHARE = 0.05;
const GOOD_SHARE = 0.01;
/** Missed utterances of a bad window: in a quiet one a single slow request shows nothing. */
const BAD_LEAST = 5;

/** Levels of degradation. 0: none, 1: features off, 2: 8 kHz sound, 3: cached results. */
export const levels = [0, 1, 2, 3] as const;
export type Level = (typeof levels)[number];

export interface Degrade {
  readonly level: Level;
  /** Bad and good windows in a row. */
  readonly bad: number;
  readonly good: number;
  /** End of the current window, epoch ms. */
  readonly until: number;
  /** Utterances of the current window: all with a promise, and those of them that missed it. */
  readonly seen: number;
  readonly missed: number;
}

export const beginDegrade = (now: number, windowMs: number): Degrade => ({
  ...{ level: 0, bad: 0, good: 0, seen: 0, missed: 0 },
  until: now + windowMs,
});

/** Outcome of one queued utterance: its wait until the slot, or `refused` for a full queue or a passed deadline. */
export type QueueOutcome = { readonly waitMs: number } | 'refused';

/** Counts an utterance in the current window. Batch work never counts: it may wait. */
export function note(state: Degrade, name: RequestClass, outcome: QueueOutcome): Degrade {
  if (name === classes.at(-1)) return state;
  const isMissed = outcome === 'refused' || outcome.waitMs > WAIT_MS[name];
  return { ...state, seen: state.seen + 1, missed: state.missed + Number(isMissed) };
}

const verdictOf = ({ seen, missed }: Degrade): 'bad' | 'good' | 'neither' => {
  if (missed >= BAD_LEAST && missed >= seen * BAD_SHARE) return 'bad';
  return missed <= seen * GOOD_SHARE ? 'good' : 'neither';
};

/** Moves `level` after the last window in a row; a full row starts the count again. */
function close(state: Degrade): Degrade {
  const verdict = verdictOf(state);
  const bad = verdict === 'bad' ? state.bad + 1 : 0;
  const good = verdict === 'good' ? state.good + 1 : 0;
  const step = bad >= WINDOWS_IN_A_ROW ? 1 : good >= WINDOWS_IN_A_ROW ? -1 : 0;
  const level = Math.min(3, Math.max(0, state.level + step)) as Level;
  return { ...state, level, bad: step === 1 ? 0 : bad, good: step === -1 ? 0 : good, seen: 0, missed: 0 };
}

/** Windows after which an idle pool is at level 0. */
const RECOVERY_WINDOWS = levels.length * WINDOWS_IN_A_ROW;

/** Closes the windows that have ended by `now`. A window without requests is good. */
export function advance(state: Degrade, now: number, windowMs: number): Degrade {
  // A clock that was set back must not keep a window open.
  if (now < state.until) return state.until - now > windowMs ? { ...state, until: now + windowMs } : state;
  const ended = Math.floor((now - state.until) / windowMs) + 1;
  let next = state;
  for (let i = 0; i < Math.min(ended, RECOVERY_WINDOWS); i++) next = close(next);
  return { ...next, until: state.until + ended * windowMs };
}
