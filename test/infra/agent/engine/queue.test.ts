import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  countAhead,
  countByClass,
  draw,
  emptyQueue,
  enqueue,
  noTurns,
  PASSED_STARTS_MAX,
  type Queue,
  type Turns,
  type Waiting,
  withdraw,
} from '../../../../infra/pool/agent/engine/queue.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';

const utterance = (id: number, name: RequestClass, deadline = 1, tenant = 'a'): Waiting => ({
  id,
  class: name,
  deadline,
  tenant,
});

const fill = (waiting: readonly Waiting[]): Queue =>
  waiting.reduce((queue, one) => {
    const next = enqueue(queue, one, 0, 10_000);
    if (!next.ok) throw new Error(next.refusal.reason);
    return next.value.queue;
  }, emptyQueue);

const waiting = fc.record({
  class: fc.constantFrom(...classes),
  deadline: fc.integer({ min: 0, max: 100 }),
  tenant: fc.constantFrom('a', 'b', 'c'),
});
const many = fc.array(waiting, { maxLength: 60 }).map((list) => list.map((one, id): Waiting => ({ ...one, id })));

/** Starts one after the other, with the queue refilled by `refill` before each. */
function startsOf(count: number, refill: (queue: Queue) => Queue): Waiting[] {
  let queue = emptyQueue;
  let turns: Turns = noTurns;
  return Array.from({ length: count }, () => {
    const drawn = draw(refill(queue), turns, 1, 0);
    [queue, turns] = [drawn.queue, drawn.turns];
    return drawn.start[0] as Waiting;
  });
}

describe('A2: an urgent utterance overtakes', () => {
  it('realtime comes out before what waited longer', () => {
    const queue = fill([utterance(1, 'batch', 10), utterance(2, 'default', 10), utterance(3, 'realtime', 99)]);
    expect(draw(queue, noTurns, 2, 0).start.map(({ id }) => id)).toEqual([3, 2]);
  });

  it('orders by deadline, then arrival, inside a class and tenant', () => {
    const queue = fill([utterance(1, 'default', 50), utterance(2, 'default', 20), utterance(3, 'default', 20)]);
    expect(draw(queue, noTurns, 3, 0).start.map(({ id }) => id)).toEqual([2, 3, 1]);
  });

  it('never starts a less urgent one while a more urgent one stays', () => {
    fc.assert(
      fc.property(many, fc.nat(10), fc.nat(100), (list, free, now) => {
        const { start, queue } = draw(fill(list), noTurns, free, now);
        const rank = (one: Waiting) => classes.indexOf(one.class);
        const worst = Math.max(-1, ...start.map(rank));
        return queue.every((one) => rank(one) >= worst);
      }),
    );
  });

  it('batch starts once in seventeen under a flood of realtime', () => {
    let id = 0;
    const starts = startsOf(17 * 5, (queue) =>
      fill([
        ...queue,
        ...(['realtime', 'batch'] as const)
          .filter((name) => queue.every((one) => one.class !== name))
          .map((name) => utterance(id++, name)),
      ]),
    );
    expect(PASSED_STARTS_MAX).toBe(16);
    expect(starts.filter((one) => one.class === 'batch')).toHaveLength(5);
  });

  it('tenants of a class take turns, however many utterances one has waiting', () => {
    const flood = Array.from({ length: 50 }, (_, id) => utterance(id, 'batch', 1, 'many'));
    const few = Array.from({ length: 3 }, (_, id) => utterance(100 + id, 'batch', 9, 'few'));
    let first = true;
    const starts = startsOf(6, (queue) => {
      const next = first ? fill([...flood, ...few]) : queue;
      first = false;
      return next;
    });
    expect(starts.map(({ tenant }) => tenant)).toEqual(['many', 'few', 'many', 'few', 'many', 'few']);
  });
});

describe('queue with deadlines', () => {
  it('loses and doubles nothing, and nothing late takes a slot', () => {
    fc.assert(
      fc.property(many, fc.nat(10), fc.nat(100), (list, free, now) => {
        const { start, late, queue } = draw(fill(list), noTurns, free, now);
        const ids = [...start, ...late, ...queue].map(({ id }) => id).sort((a, b) => a - b);
        expect(ids).toEqual(list.map(({ id }) => id));
        expect(start).toHaveLength(Math.min(free, list.length - late.length));
        expect(start.every(({ deadline }) => deadline > now)).toBe(true);
        expect(late.every(({ deadline }) => deadline <= now)).toBe(true);
      }),
    );
  });

  it('refuses as busy when it is full of its own class and tenant', () => {
    const full = fill([utterance(1, 'batch')]);
    expect(enqueue(full, utterance(2, 'batch'), 0, 1)).toMatchObject({ ok: false, refusal: { reason: 'pool_busy' } });
  });

  it('A2: a full queue displaces the newest batch utterance for a realtime one', () => {
    const full = fill([utterance(1, 'batch', 50), utterance(2, 'batch', 50)]);
    const added = enqueue(full, utterance(3, 'realtime', 50), 0, 2);
    expect(added).toMatchObject({ ok: true, value: { queue: [{ id: 3 }, { id: 1 }], displaced: [{ id: 2 }] } });
  });

  it('counts by class and lets go of what is withdrawn', () => {
    const queue = fill([utterance(1, 'batch'), utterance(2, 'batch'), utterance(3, 'realtime')]);
    expect(countByClass(withdraw(queue, 1))).toEqual({ realtime: 1, interactive: 0, default: 0, batch: 1 });
  });

  it('A2 counts what starts before a new utterance of a class and tenant', () => {
    const queue = fill([
      ...[utterance(1, 'realtime'), utterance(2, 'batch')],
      ...[3, 4, 5].map((id) => utterance(id, 'default', 1, 'many')),
      utterance(6, 'default', 1, 'few'),
    ]);
    expect(countAhead(queue, { class: 'default', tenant: 'none' })).toBe(3);
    expect(countAhead(queue, { class: 'default', tenant: 'few' })).toBe(4);
    expect(countAhead(queue, { class: 'default', tenant: 'many' })).toBe(5);
  });
});
