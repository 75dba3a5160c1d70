import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  adjust,
  BATCH_MAX,
  BATCH_MIN,
  type Feedback,
  noFeedback,
  type Observation,
  SHARE_MIN,
  windowsOf,
} from '../../../../infra/pool/agent/engine/feedback.ts';
import { emptyQueue, enqueue, type Waiting } from '../../../../infra/pool/agent/engine/queue.ts';
import { MACRO_WINDOW_MS, MICRO_WINDOW_MS, noWindows, release } from '../../../../infra/pool/agent/engine/windows.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';

const waiting = (id: number, name: RequestClass, since: number): Waiting => ({
  ...{ id, class: name, since },
  tenant: 'a',
  deadline: 60_000,
});
const fill = (all: readonly Waiting[]) =>
  all.reduce((queue, one) => {
    const next = enqueue(queue, one, 0, 1_000);
    if (!next.ok) throw new Error(next.refusal.reason);
    return next.value.queue;
  }, emptyQueue);
const longest = { microMs: MICRO_WINDOW_MS, macroMs: MACRO_WINDOW_MS, batch: 16 };

describe('windows', () => {
  const queue = fill([waiting(0, 'batch', 0), waiting(1, 'realtime', 0), waiting(2, 'default', 30)]);
  const idsAt = (now: number, free = 16) => release(queue, longest, free, now).ready.map(({ id }) => id);

  it('A13: release urgent work after 50 ms and batch work after 500 ms', () => {
    expect([idsAt(49), idsAt(50), idsAt(499), idsAt(500)]).toEqual([[], [1, 2], [1, 2], [1, 2, 0]]);
    expect(release(queue, longest, 16, 10).wakeAt).toBe(50);
    expect(release(queue, longest, 16, 50).wakeAt).toBe(500);
  });

  it('A13: end early when as many wait as slots are free', () => {
    expect(idsAt(31, 2)).toEqual([1, 2]);
    expect(idsAt(31, 1)).toEqual([1, 2, 0]);
  });

  it('A13: release the whole queue at once when they are off', () => {
    expect(release(queue, noWindows, 1, 0)).toEqual({ ready: queue, wakeAt: undefined });
  });

  const arrivals = fc.array(fc.record({ class: fc.constantFrom(...classes), since: fc.nat(600) }), { maxLength: 40 });

  it('A13: hold no utterance longer than its window', () => {
    fc.assert(
      fc.property(arrivals, fc.integer({ min: 1, max: 40 }), (list, free) => {
        const filled = fill(list.map((one, id) => waiting(id, one.class, one.since)));
        const { ready, wakeAt } = release(filled, longest, free, 600);
        const held = filled.filter((one) => !ready.includes(one));
        for (const { class: name, since = 0 } of held) {
          expect(600 - since).toBeLessThan(name === 'batch' ? MACRO_WINDOW_MS : MICRO_WINDOW_MS);
        }
        expect(wakeAt === undefined).toBe(held.length === 0);
      }),
    );
  });
});

const observation: fc.Arbitrary<Observation> = fc.record(
  { depth: fc.nat(2_000), requestsPerSecond: fc.nat(2_000), gpu: fc.double({ min: 0, max: 1, noNaN: true }) },
  { requiredKeys: ['depth', 'requestsPerSecond'] },
);
function runOf(from: Feedback, observations: readonly Observation[]): Feedback[] {
  const states = [from];
  for (const one of observations) states.push(adjust(states.at(-1) ?? from, one));
  return states;
}

describe('feedback', () => {
  it('A7 A24: stays within its bounds for any observations', () => {
    fc.assert(
      fc.property(fc.array(observation, { maxLength: 30 }), (observations) => {
        for (const { share, batch } of runOf(noFeedback, observations)) {
          expect(share >= SHARE_MIN && share <= 1 && batch >= BATCH_MIN && batch <= BATCH_MAX).toBe(true);
        }
      }),
    );
  });

  it('A7: settles under a steady load without turning back', () => {
    fc.assert(
      fc.property(fc.array(observation, { maxLength: 8 }), observation, (past, steady) => {
        const from = runOf(noFeedback, past).at(-1) ?? noFeedback;
        const sizes = runOf(
          from,
          Array.from({ length: 10 }, () => steady),
        ).map(({ batch }) => batch);
        expect(sizes.at(-1)).toBe(sizes.at(-2));
        const steps = sizes.slice(1).map((batch, i) => Math.sign(batch - (sizes[i] ?? batch)));
        expect(new Set(steps.filter((step) => step !== 0)).size).toBeLessThan(2);
      }),
    );
  });

  it('A7: settles while the depth follows from the batch', () => {
    // An engine that takes longer for a larger batch, though less per utterance, behind steady arrivals.
    const settles = (perSecond: number) => {
      let state = noFeedback;
      let depth = 0;
      const sizes: number[] = [];
      for (let second = 0; second < 60; second++) {
        const served = (1_000 / (40 + state.batch)) * state.batch;
        depth = Math.min(1_000, Math.max(perSecond * windowsOf(state).macroMs * 0.001, depth + perSecond - served));
        state = adjust(state, { depth, requestsPerSecond: perSecond });
        sizes.push(state.batch);
      }
      return new Set(sizes.slice(-20)).size;
    };
    expect([10, 100, 300, 500, 700, 900].map(settles)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('A33: takes a busy GPU for load, and an idle rate for none', () => {
    const grown = adjust(noFeedback, { depth: 0, requestsPerSecond: 100, gpu: 0.95 });
    expect(grown).toEqual({ share: SHARE_MIN * 2, batch: BATCH_MIN * 2 });
    expect(adjust(grown, { depth: 0, requestsPerSecond: 100, gpu: 0.8 })).toEqual(grown);
    expect(adjust(grown, { depth: 1, requestsPerSecond: 1, gpu: 0.95 })).toEqual(noFeedback);
  });
});
