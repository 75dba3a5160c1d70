// Restart policy of a dead part, as a pure decision.

/** First wait, in milliseconds; doubled on every early death up to WAIT_MS_MAX. */
const WAIT_MS_MIN = 200;
const WAIT_MS_MAX = 5_000;
/** A part that lived this long, in milliseconds, has recovered: its earlier deaths no longer count. */
const RECOVERED_MS = 30_000;
/** A part that never became ready dies this often in a row before the stack gives up: it cannot start at all. */
const NEVER_READY_MAX = 3;

export type Deaths = { inARow: number; everReady: boolean };

export type Restart = { again: true; waitMs: number; deaths: Deaths } | { again: false; deaths: Deaths };

export function decideRestart(before: Deaths, life: { wasReady: boolean; lifeMs: number }): Restart {
  const recovered = life.wasReady && life.lifeMs >= RECOVERED_MS;
  const deaths = { inARow: recovered ? 1 : before.inARow + 1, everReady: before.everReady || life.wasReady };
  if (!deaths.everReady && deaths.inARow >= NEVER_READY_MAX) return { again: false, deaths };
  const waitMs = Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** (deaths.inARow - 1));
  return { again: true, waitMs, deaths };
}
