import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Capacity, type Demand, decideAdmission, type Holding } from '../../../shared/pool/admission.ts';
import { classes, type RequestClass } from '../../../shared/tenant/claims.ts';

const kept: Capacity = { total: 64, reserved: 4, lends: false };
const lent: Capacity = { total: 64, reserved: 4, lends: true };
const NOW = 1_000;

const demandOf = (name: RequestClass, tenant = 'a', size = 1): Demand => ({ class: name, tenant, size });
const holds = (count: number, name: RequestClass, tenant = 'a', waiting = true): Holding[] =>
  Array.from({ length: count }, () => ({ ...demandOf(name, tenant), waiting, deadline: NOW + 1 }));

/** Requests that arrive one after the other; some of those admitted begin. */
const arrivals = fc.array(
  fc.record({
    class: fc.constantFrom(...classes),
    tenant: fc.constantFrom('a', 'b', 'c'),
    begins: fc.boolean(),
  }),
  { maxLength: 120 },
);

function admitAll(list: readonly { class: RequestClass; tenant: string; begins: boolean }[], capacity: Capacity) {
  let holdings: Holding[] = [];
  for (const { begins, ...one } of list) {
    const demand = { ...one, size: 1 };
    const decided = decideAdmission(holdings, demand, capacity, NOW);
    if (!decided.admitted) continue;
    const left = holdings.filter((other) => !decided.displaced.includes(other));
    holdings = [...left, { ...demand, waiting: capacity.lends || !begins, deadline: NOW + 1 }];
  }
  return holdings;
}

const count = (holdings: readonly Holding[], name: RequestClass) => holdings.filter((one) => one.class === name).length;

describe('R13 A2 admission by class and tenant', () => {
  it('one class of one tenant takes everything that shares leave', () => {
    expect(decideAdmission(holds(51, 'batch'), demandOf('batch'), kept, NOW)).toEqual({
      admitted: true,
      displaced: [],
    });
    expect(decideAdmission(holds(52, 'batch'), demandOf('batch'), kept, NOW)).toEqual({ admitted: false });
    expect(decideAdmission(holds(63, 'batch'), demandOf('batch'), lent, NOW)).toEqual({
      admitted: true,
      displaced: [],
    });
  });

  it('realtime has its share although all batch work has begun', () => {
    const begun = holds(52, 'batch', 'a', false);
    expect(decideAdmission(begun, demandOf('realtime', 'b'), kept, NOW)).toEqual({ admitted: true, displaced: [] });
    const full = [...begun, ...holds(4, 'realtime', 'b', false)];
    expect(decideAdmission(full, demandOf('realtime', 'b'), kept, NOW)).toEqual({ admitted: false });
  });

  it('realtime above its share displaces the newest waiting batch request', () => {
    const batch = holds(52, 'batch');
    const decided = decideAdmission([...batch, ...holds(4, 'realtime', 'b')], demandOf('realtime', 'b'), kept, NOW);
    expect(decided.admitted && decided.displaced).toEqual([batch.at(-1)]);
  });

  it('a tenant with one request displaces one of the tenant with most', () => {
    const holdings = [...holds(51, 'default', 'many'), ...holds(1, 'default', 'few')];
    const decided = decideAdmission(holdings, demandOf('default', 'few'), kept, NOW);
    expect(decided.admitted && decided.displaced).toEqual([holdings[50]]);
    expect(decideAdmission(holdings, demandOf('default', 'many'), kept, NOW)).toEqual({ admitted: false });
  });

  it('work past its deadline gives way first', () => {
    const holdings = holds(64, 'realtime');
    holdings[7] = { ...(holdings[7] as Holding), deadline: NOW };
    const decided = decideAdmission(holdings, demandOf('realtime'), lent, NOW);
    expect(decided.admitted && decided.displaced).toEqual([holdings[7]]);
  });

  it('bytes: one large demand displaces as many holdings as it needs', () => {
    const capacity: Capacity = { total: 100, reserved: 10, lends: true };
    const holdings = [30, 30, 40].map((size) => ({
      ...demandOf('batch', 'a', size),
      waiting: true,
      deadline: NOW + 1,
    }));
    const decided = decideAdmission(holdings, demandOf('realtime', 'b', 50), capacity, NOW);
    expect(decided.admitted && decided.displaced).toEqual([holdings[2], holdings[1]]);
  });

  it.each([
    ['kept', kept],
    ['lent', lent],
  ])('holds for any arrivals, with shares %s', (_, capacity) => {
    fc.assert(
      fc.property(arrivals, fc.constantFrom(...classes), (list, name) => {
        const holdings = admitAll(list, capacity);
        expect(holdings.length).toBeLessThanOrEqual(capacity.total);
        const decided = decideAdmission(holdings, demandOf(name, 'z'), capacity, NOW);
        // No class starves: below its reserved part it is always admitted.
        if (count(holdings, name) < capacity.reserved) expect(decided.admitted).toBe(true);
        // Work-conserving: nothing is refused or displaced while unreserved capacity is left.
        const unlent = capacity.lends ? 0 : 3 * capacity.reserved;
        if (holdings.length + unlent < capacity.total) expect(decided).toEqual({ admitted: true, displaced: [] });
        if (!decided.admitted) return;
        for (const victim of decided.displaced) {
          expect(victim.waiting).toBe(true);
          // Neither running work nor a reserved part is displaced. Urgent work loses only to a class below
          // its reserved part.
          if (victim.class !== name) expect(count(holdings, victim.class)).toBeGreaterThan(capacity.reserved);
          const urgent = classes.indexOf(victim.class) < classes.indexOf(name);
          if (urgent) expect(count(holdings, name)).toBeLessThan(capacity.reserved);
        }
      }),
    );
  });

  it('one tenant’s flood leaves another of its class half', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.constantFrom(...classes), (flood, name) => {
        const calls = (tenant: string, length: number) =>
          Array.from({ length }, () => ({ class: name, tenant, begins: false }));
        const holdings = admitAll([...calls('flood', flood), ...calls('late', 26)], kept);
        expect(holdings.filter(({ tenant }) => tenant === 'late')).toHaveLength(26);
      }),
    );
  });
});
