import fc from 'fast-check';
import { expect, it } from 'vitest';
import { blobPolicy, coldest, decideBlobs, floorOf, type StoredBlob } from '../../../functions/tier/decide.ts';
import { azureEastUs } from '../../../functions/tier/prices.ts';
import { blobTiers, type Need } from '../../../shared/registry/tiers.ts';
import { runs } from '../../seeds.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = 1_767_571_200_000;

const blob = (idleDays: number, over: Partial<StoredBlob> = {}): StoredBlob => ({
  digest: 'a'.repeat(64),
  bytes: 1e9,
  tier: 'hot',
  since: NOW - idleDays * DAY,
  lastRead: NOW - idleDays * DAY,
  reads: 0,
  needs: [],
  ...over,
});

const decide = (...blobs: StoredBlob[]) => decideBlobs(blobs, blobPolicy, NOW);
const target = (one: StoredBlob) => decide(one)[0]?.to;

it('A11 moves a blob colder the longer it is idle', () => {
  expect([5, 60, 120, 400].map((days) => target(blob(days)))).toEqual([undefined, 'cool', 'cold', 'archive']);
});

it('keeps a blob in hot, or returns it there, while it is read', () => {
  expect(target(blob(0, { reads: 30, since: NOW - 90 * DAY }))).toBeUndefined();
  const again = blob(0, { tier: 'cold', reads: 30, since: NOW - 100 * DAY });
  expect(decide(again)[0]).toMatchObject({ from: 'cold', to: 'hot', rule: 'cheaper' });
});

it('charges the rest of the minimum stay in the fees', () => {
  const gigabyte = (days: number) => blob(400, { tier: 'cold', since: NOW - days * DAY, needs: ['rollback'] });
  const [early] = decide(gigabyte(60));
  expect(early?.fees.early).toBeCloseTo(0.0036, 9);
  expect(early?.fees.total).toBeCloseTo(0.0036 + 0.03 + 0.00001 + 0.00001, 6);
  expect(decide(gigabyte(200))[0]?.fees.early).toBe(0);
  expect(target(blob(120, { tier: 'cool', since: NOW - DAY }))).toBeUndefined();
});

it('A11 never moves a blob below the floor of its needs', () => {
  const needs: Need[] = ['alias', 'trial', 'rollback', 'hold'];
  expect(needs.map((need) => target(blob(900, { needs: [need] })) ?? 'hot')).toEqual(['hot', 'hot', 'cool', 'cold']);
  expect(floorOf(['hold', 'rollback'])).toBe('cool');
  expect(decide(blob(900, { tier: 'cold', needs: ['alias'] }))[0]).toMatchObject({ to: 'hot', rule: 'needed' });
});

it('archives only after 180 idle days, and returns nothing for its price', () => {
  expect(target(blob(179, { bytes: 1e12 }))).not.toBe('archive');
  expect(decide(blob(1, { tier: 'archive', reads: 0 }))).toEqual([]);
});

it('returns from archive by high priority when requested, by standard otherwise', () => {
  const [wanted] = decide(blob(400, { tier: 'archive', wanted: true }));
  expect(wanted).toMatchObject({ to: 'hot', priority: 'high', expectedAt: NOW + HOUR });
  const [needed] = decide(blob(400, { tier: 'archive', needs: ['rollback'] }));
  expect(needed).toMatchObject({ to: 'cool', priority: 'standard', expectedAt: NOW + 15 * HOUR });
  expect(wanted!.fees.total).toBeGreaterThan(5 * needed!.fees.total);
});

it('queues returns beyond what an account brings back in an hour', () => {
  const large = () => blob(400, { tier: 'archive', needs: ['alias'], bytes: azureEastUs.highGbPerHour * 1e9 });
  const times = decide(large(), large(), large()).map(({ expectedAt }) => (expectedAt - NOW) / HOUR);
  expect(times).toEqual([1, 2, 3]);
});

it('raises the priority of a return in progress, and repeats nothing else', () => {
  const moving = (priority: 'standard' | 'high') => ({ to: 'cool' as const, priority });
  const soon = { tier: 'archive' as const, wanted: true };
  expect(decide(blob(400, { ...soon, moving: moving('standard') }))[0]).toMatchObject({
    to: 'cool',
    rule: 'hurry',
    priority: 'high',
  });
  expect(decide(blob(400, { ...soon, moving: moving('high') }))).toEqual([]);
  expect(decide(blob(400, { moving: { to: 'cold' } }))).toEqual([]);
});

it('explains a move with the cost of every tier', () => {
  const { reasons, savesMonthly } = decide(blob(120))[0]!;
  expect(reasons).toMatchObject({ floor: 'archive', idleDays: 120, horizonDays: 120, expectedReads: 1 });
  expect(reasons.costs.hot).toBeCloseTo(0.072, 4);
  expect(reasons.costs.cold).toBeCloseTo(0.0144 + 0.03, 4);
  expect(savesMonthly).toBeCloseTo(0.0144, 6);
});

it('A11 no decision goes below a floor, changes nothing or repeats itself', () => {
  const arbitrary = fc.record({
    idle: fc.integer({ min: 0, max: 2_000 }),
    stay: fc.integer({ min: 0, max: 400 }),
    bytes: fc.integer({ min: 1, max: 5e9 }),
    tier: fc.constantFrom(...blobTiers),
    reads: fc.integer({ min: 0, max: 100 }),
    needs: fc.subarray<Need>(['alias', 'rollback', 'trial', 'hold']),
  });
  fc.assert(
    fc.property(arbitrary, ({ idle, stay, ...rest }) => {
      const before = blob(idle, { ...rest, since: NOW - stay * DAY });
      const [move] = decide(before);
      if (!move) return;
      expect(move.to).not.toBe(move.from);
      for (const need of rest.needs)
        expect(blobTiers.indexOf(move.to)).toBeLessThanOrEqual(blobTiers.indexOf(coldest[need]));
      expect(decide({ ...before, tier: move.to, since: NOW })).toEqual([]);
    }),
    { numRuns: runs(300, 3_000) },
  );
});
