import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  countByClass,
  draw,
  emptyQueue,
  enqueue,
  type Queue,
  type Waiting,
  withdraw,
} from '../../../infra/pool/agent/queue.ts';
import { classes } from '../../../shared/tenant/claims.ts';

const fill = (waiting: readonly Waiting[]): Queue =>
  waiting.reduce((queue, one) => {
    const next = enqueue(queue, one, 10_000);
    if (!next.ok) throw new Error(next.refusal.reason);
    return next.value;
  }, emptyQueue);

const waiting = fc.record({ class: fc.constantFrom(...classes), deadline: fc.integer({ min: 0, max: 100 }) });
const many = fc.array(waiting, { maxLength: 60 }).map((list) => list.map((one, id): Waiting => ({ ...one, id })));

describe('A2: an urgent utterance overtakes', () => {
  it('realtime comes out before what waited longer', () => {
    const queue = fill([
      { id: 1, class: 'batch', deadline: 10 },
      { id: 2, class: 'default', deadline: 10 },
      { id: 3, class: 'realtime', deadline: 99 },
    ]);
    expect(draw(queue, 2, 0).start.map(({ id }) => id)).toEqual([3, 2]);
  });

  it('inside a class the earliest deadline is first, then the first to come', () => {
    const queue = fill([
      { id: 1, class: 'default', deadline: 50 },
      { id: 2, class: 'default', deadline: 20 },
      { id: 3, class: 'default', deadline: 20 },
    ]);
    expect(draw(queue, 3, 0).start.map(({ id }) => id)).toEqual([2, 3, 1]);
  });

  it('never starts a less urgent one while a more urgent one stays', () => {
    fc.assert(
      fc.property(many, fc.nat(10), fc.nat(100), (list, free, now) => {
        const { start, queue } = draw(fill(list), free, now);
        const rank = (one: Waiting) => classes.indexOf(one.class);
        const worst = Math.max(-1, ...start.map(rank));
        return queue.every((one) => rank(one) >= worst);
      }),
    );
  });
});

describe('queue with deadlines', () => {
  it('loses and doubles nothing, and nothing late takes a slot', () => {
    fc.assert(
      fc.property(many, fc.nat(10), fc.nat(100), (list, free, now) => {
        const { start, late, queue } = draw(fill(list), free, now);
        const ids = [...start, ...late, ...queue].map(({ id }) => id).sort((a, b) => a - b);
        expect(ids).toEqual(list.map(({ id }) => id));
        expect(start.length).toBeLessThanOrEqual(free);
        expect(start.every(({ deadline }) => deadline > now)).toBe(true);
        expect(late.every(({ deadline }) => deadline <= now)).toBe(true);
      }),
    );
  });

  it('refuses as busy when it is full', () => {
    const full = fill([{ id: 1, class: 'batch', deadline: 1 }]);
    const refused = enqueue(full, { id: 2, class: 'realtime', deadline: 1 }, 1);
    expect(refused).toMatchObject({ ok: false, refusal: { reason: 'pool_busy' } });
  });

  it('counts by class and lets go of what is withdrawn', () => {
    const queue = fill([
      { id: 1, class: 'batch', deadline: 1 },
      { id: 2, class: 'batch', deadline: 1 },
      { id: 3, class: 'realtime', deadline: 1 },
    ]);
    expect(countByClass(withdraw(queue, 1))).toEqual({ realtime: 1, interactive: 0, default: 0, batch: 1 });
  });
});
