import { describe, expect, it } from 'vitest';
import { nameOfReceived, type Received, receive } from '../../../functions/audit/intake/intake.ts';
import { encodeState, freshState, type LogState, readState } from '../../../functions/audit/log/log-state.ts';
import { COMMIT_ENTRIES_MAX, DELIVERY_GAP_MS, sequence } from '../../../functions/audit/sequencer/sequence.ts';
import type { Delivery } from '../../../shared/audit/delivery.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';

const EPOCH = '2f7c9a30-7c3f-4f1e-8f0e-5a5f0f5b0f11';
const ID = '017f22e2-79b0-7cc3-98c4-dc0c0c07398f';
const event = (more: object = {}) => ({ v: 1, id: ID, type: 'route', at: 1, producer: 'edge', tenant: 'dev', ...more });
const rows = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => ({ to: from + at, t: 2, events: [event()] }));
const deliveryOf = (from: number, count: number, oldest = 1): Delivery => ({
  ...{ v: 1, producer: 'gate/dev/eu', epoch: EPOCH, oldest },
  rows: rows(from, count),
});
const received = async (from: number, count: number, oldest = 1, at = 0): Promise<Received> => {
  const one = await receive(deliveryOf(from, count, oldest), at, async () => 'hidden');
  if (!one) throw new Error('nothing received');
  return one;
};

/** A log with some events of the outbox. */
const stateWith = (upTo: number): LogState => ({
  ...freshState('audit.example/eu/2026', 2026, undefined),
  ...{ size: 1, upTo: { [`gate/dev/eu ${EPOCH}`]: upTo }, tseq: { dev: upTo } },
});
const ask = (state: LogState, some: readonly Received[], now = 10) =>
  sequence(
    state,
    some.map((one, at) => ({ name: String(at), received: one })),
    { now, newId: () => ID },
  );
const leavesOf = (entries: readonly Uint8Array[]) => entries.map((entry) => readLeaf(entry));

describe('C9 the order of events', () => {
  it('in their order, once, with the counts of their outbox and their tenant', async () => {
    const next = ask(stateWith(3), [await received(6, 2), await received(2, 4)]);
    expect(leavesOf(next.entries).map((leaf) => [leaf?.pseq, leaf?.tseq])).toEqual([
      [4, 4],
      [5, 5],
      [6, 6],
      [7, 7],
    ]);
    expect(next.used).toEqual(['1', '0']);
    expect(next.upTo).toEqual({ [`gate/dev/eu ${EPOCH}`]: 7 });
  });

  it('an early event waits; a lost or overdue one leaves a gap leaf', async () => {
    expect(ask(stateWith(3), [await received(6, 2)])).toMatchObject({ entries: [], held: 1, used: [] });
    const gap = { type: 'producer.gap', from: 4, to: 5, outbox: 'gate/dev/eu', epoch: EPOCH };
    const lost = ask(stateWith(3), [await received(6, 2, 6)]);
    expect(leavesOf(lost.entries)).toMatchObject([gap, { pseq: 6 }, { pseq: 7 }]);
    const late = ask(stateWith(3), [await received(6, 2)], DELIVERY_GAP_MS + 1);
    expect(leavesOf(late.entries)).toMatchObject([gap, { pseq: 6 }, { pseq: 7 }]);
  });

  it('a repeated event is dropped together with its delivery', async () => {
    expect(ask(stateWith(9), [await received(2, 4)])).toMatchObject({ entries: [], used: ['0'] });
  });

  it('a full commit defers the rest; a full state takes no new outbox', async () => {
    const much = await received(4, COMMIT_ENTRIES_MAX);
    const after = await received(4 + COMMIT_ENTRIES_MAX, 1);
    expect(ask(stateWith(3), [much, after])).toMatchObject({ used: ['0'], held: 1 });
    const state = stateWith(0);
    const full = sequence({ ...state, upTo: {} }, [{ name: 'new', received: await received(1, 1) }], {
      now: 10,
      newId: () => ID,
      full: true,
    });
    expect(full).toMatchObject({ entries: [], held: 1 });
    // Reports of the functions are durable when acknowledged: a restart must not wait for capacity.
    const own = { ...(await received(1, 1)), producer: 'functions/eu' };
    const taken = sequence({ ...state, upTo: {} }, [{ name: 'own', received: own }], {
      now: 10,
      newId: () => ID,
      full: true,
    });
    expect(taken).toMatchObject({ used: ['own'], held: 0 });
  });

  it('a state is read as it was written', () => {
    const state = { ...stateWith(4), closed: true, previous: { origin: 'o', size: 3, root: stateWith(1).root } };
    expect(readState(encodeState(state))).toEqual(state);
    expect(() => readState(new TextEncoder().encode('{"v":1}'))).toThrow();
  });
});

describe('C9 deliveries', () => {
  it('rows with a hole between them, or before the first number, are none', async () => {
    const hide = async () => '';
    const hole = { ...deliveryOf(1, 1), rows: [...rows(1, 1), ...rows(3, 1)] };
    expect(await receive(hole, 0, hide)).toBeUndefined();
    const early = { ...deliveryOf(1, 1), rows: [{ to: 1, t: 2, events: [event(), event()] }] };
    expect(await receive(early, 0, hide)).toBeUndefined();
    expect(await receive(deliveryOf(1, 0), 0, hide)).toBeUndefined();
  });

  it('an unreadable or oversized event keeps its number', async () => {
    const large = event(Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`field${at}`, at])));
    const events = ['text', null, { v: 1 }, large, event()];
    const one = await receive({ ...deliveryOf(1, 0), rows: [{ to: 5, t: 2, events }] }, 0, async () => 'x');
    const types = one?.drafts.map(({ type }) => type);
    expect(types).toEqual([...Array(4).fill('event.unreadable'), 'route']);
    expect(one?.drafts.every((draft) => JSON.stringify(draft).length < 20_480)).toBe(true);
  });

  it('equal rows have equal names, until no earlier row can come', async () => {
    const names = [await received(6, 2), await received(6, 2, 3), await received(6, 2, 6), await received(6, 3)];
    const [first, second, third, fourth] = names.map((one) => nameOfReceived('eu', one));
    expect(second).toBe(first);
    expect(new Set([first, third, fourth]).size).toBe(3);
  });
});
