import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  advance,
  beginDegrade,
  DEGRADE_WINDOW_MS,
  type Degrade,
  note,
  type QueueOutcome,
  WAIT_MS,
} from '../../../../infra/pool/agent/degrade/degrade.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';

const WINDOW = DEGRADE_WINDOW_MS;
const begin = beginDegrade(0, WINDOW);

/** Closes one window in which `missed` of 100 realtime utterances waited too long. */
function closeWindow(state: Degrade, missed: number): Degrade {
  const outcomes = Array.from({ length: 100 }, (_, i): QueueOutcome => ({ waitMs: i < missed ? 301 : 300 }));
  return advance(
    outcomes.reduce((next, one) => note(next, 'realtime', one), state),
    state.until,
    WINDOW,
  );
}
const levelsOf = (missed: readonly number[]) => {
  let state = begin;
  return missed.map((count) => {
    state = closeWindow(state, count);
    return state.level;
  });
};
const rows = (...counts: [windows: number, missed: number][]) =>
  counts.flatMap(([windows, missed]) => Array.from({ length: windows }, () => missed));

describe('degrade', () => {
  it('A20: steps down after three bad windows in a row, to level 3', () => {
    expect(levelsOf(rows([12, 5]))).toEqual([0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
  });

  it('A20: steps up after three good windows in a row', () => {
    expect(levelsOf(rows([9, 100], [10, 1])).slice(9)).toEqual([3, 3, 2, 2, 2, 1, 1, 1, 0, 0]);
  });

  it('A20: keeps its level through windows neither bad nor good', () => {
    expect(levelsOf(rows([2, 5], [1, 3], [2, 5], [1, 5], [2, 0], [1, 2], [2, 0], [1, 0]))).toEqual([
      ...[0, 0, 0, 0, 0, 1],
      ...[1, 1, 1, 1, 1, 0],
    ]);
  });

  it('A20: takes neither batch work nor a few slow requests for a bad window', () => {
    const missed = (name: RequestClass, count: number) => {
      let state = begin;
      for (let i = 0; i < 3; i++) {
        for (let j = 0; j < count; j++) state = note(state, name, 'refused');
        state = advance(state, state.until, WINDOW);
      }
      return state.level;
    };
    expect([missed('batch', 50), missed('interactive', 4), missed('interactive', 5)]).toEqual([0, 0, 1]);
  });

  it.each(Object.entries(WAIT_MS).filter(([name]) => name !== 'batch') as [RequestClass, number][])(
    'A20: counts a wait of %s work beyond %i ms as missed',
    (name, most) => {
      expect(note(begin, name, { waitMs: most }).missed).toBe(0);
      expect(note(begin, name, { waitMs: most + 1 }).missed).toBe(1);
    },
  );

  it('A20: is at level 0 again after idle windows, whatever the clock does', () => {
    const worst: Degrade = { ...begin, level: 3 };
    expect(advance(worst, WINDOW * 9, WINDOW).level).toBe(0);
    expect(advance(worst, WINDOW * 1e9, WINDOW)).toMatchObject({ level: 0, until: WINDOW * (1e9 + 1) });
    expect(advance({ ...worst, until: 10 * WINDOW }, 0, WINDOW).until).toBe(WINDOW);
  });

  it('A20: moves by one level at most three windows apart', () => {
    const event = fc.record({ name: fc.constantFrom(...classes), waitMs: fc.nat(20_000), pauseMs: fc.nat(5_000) });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 300 }), (events) => {
        let state = begin;
        let now = 0;
        let moved = Number.NEGATIVE_INFINITY;
        for (const { name, waitMs, pauseMs } of events) {
          now += pauseMs;
          const next = advance(note(state, name, { waitMs }), now, WINDOW);
          if (next.level !== state.level) {
            expect(Math.abs(next.level - state.level)).toBe(1);
            expect(now - moved).toBeGreaterThan(2 * WINDOW);
            moved = now;
          }
          state = next;
        }
      }),
    );
  });
});
