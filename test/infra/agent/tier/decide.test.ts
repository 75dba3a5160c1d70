import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decide, type Move } from '../../../../infra/pool/agent/tier/decide.ts';
import { explain } from '../../../../infra/pool/agent/tier/explain.ts';
import { addToProfile, advanceProfile, expectedAt, startProfile } from '../../../../infra/pool/agent/tier/profile.ts';
import { addRequest, countAt, perSecond, startRate } from '../../../../infra/pool/agent/tier/rate.ts';
import { type TierModel, type TierState, tierSettings } from '../../../../infra/pool/agent/tier/state.ts';
import { runs } from '../../../seeds.ts';

const NOW = 1_767_571_200_000;
const HOUR = 3_600_000;
const GB = 1e9;

/** A model in ssd of one GB, with a rate of so many requests an hour. */
const model = (id: string, perHour: number, over: Partial<TierModel> = {}): TierModel => ({
  id,
  language: 'en',
  gpuBytes: GB,
  fileBytes: GB,
  loadSeconds: { ram: 0.2, ssd: 1, blob: 8 },
  rate: { count: perHour / Math.LN2, at: NOW, halfLifeMs: HOUR },
  slowRate: { count: (24 * perHour) / Math.LN2, at: NOW, halfLifeMs: 24 * HOUR },
  leases: 0,
  inRam: false,
  inSsd: true,
  ...over,
});

const loaded = { device: 'gpu0', deviceSince: NOW - HOUR };

const state = (models: readonly TierModel[], over: Partial<TierState> = {}): TierState => ({
  models,
  devices: [{ id: 'gpu0', bytes: 2 * GB }],
  ramBytes: 0,
  ssdBytes: 100 * GB,
  profiles: new Map(),
  settings: tierSettings,
  ...over,
});

const show = (moves: readonly Move[]) => moves.map(({ act, model: id, tier, rule }) => `${act} ${id} ${tier} ${rule}`);
const waiting = { waitingSince: NOW - 10 };

it('A11 loads a model that a request waits for and drops the lowest score', () => {
  const small = model('small', 20, { ...loaded, gpuBytes: GB / 2 });
  const moves = decide(state([model('busy', 90, loaded), model('idle', 5, loaded), model('asked', 2, waiting)]), NOW);
  expect(show(moves)).toEqual(['drop idle gpu replaced', 'load asked gpu waiting']);
  const half = model('asked', 2, { ...waiting, gpuBytes: GB / 2 });
  const spared = decide(
    state([model('large', 60, loaded), small, model('x', 1, { ...loaded, gpuBytes: GB / 2 }), half]),
    NOW,
  );
  expect(show(spared)).toEqual(['drop x gpu replaced', 'load asked gpu waiting']);
});

it('A11 does not copy and load the same model at once', () => {
  const asked = model('asked', 90, waiting);
  const copying = { model: 'asked', tier: 'ram' } as const;
  expect(decide(state([asked], { ramBytes: GB, copying }), NOW)).toEqual([]);
  const devices = [{ id: 'gpu0', bytes: 2 * GB, loading: 'asked' }];
  expect(decide(state([asked], { ramBytes: GB, devices }), NOW)).toEqual([]);
  expect(show(decide(state([asked], { ramBytes: GB }), NOW))).toEqual(['load asked gpu waiting']);
});

it.each([
  ['leased', { leases: 1 }],
  ['pinned', { floor: 'gpu' }],
  ['waited for', waiting],
  ['needed by a canary step', { needed: true }],
  ['a roll-back target without a copy in ram', { floor: 'ram' }],
] as const)('A11 never drops a model from gpu that is %s', (_, held) => {
  const moves = decide(
    state([model('held', 0, { ...loaded, ...held }), model('busy', 90, loaded), model('asked', 9, waiting)]),
    NOW,
  );
  expect(show(moves)).toEqual(['drop busy gpu replaced', 'load asked gpu waiting']);
});

it('loads one model at a time on a device, the longest wait first', () => {
  const models = [model('later', 9, { waitingSince: NOW - 5 }), model('first', 9, waiting)];
  expect(show(decide(state(models), NOW))).toEqual(['load first gpu waiting']);
  expect(decide(state(models, { devices: [{ id: 'gpu0', bytes: 2 * GB, loading: 'first' }] }), NOW)).toEqual([]);
  const two = state(models, { devices: ['gpu0', 'gpu1'].map((id) => ({ id, bytes: 2 * GB })) });
  expect(decide(two, NOW).map(({ model: id, device }) => [id, device])).toEqual([
    ['first', 'gpu0'],
    ['later', 'gpu1'],
  ]);
});

it('leaves the device idle while a request waits for a lease to end', () => {
  const busy = { ...loaded, leases: 1 };
  expect(
    decide(state([model('a', 1, busy), model('b', 1, busy), model('asked', 9, waiting), model('hot', 900)]), NOW),
  ).toEqual([]);
});

it('A11 keeps a model with one request from evicting a resident that has more', () => {
  const once = startRate(HOUR, NOW);
  const asked = model('asked', 0, {
    ...waiting,
    rate: addRequest(once, NOW),
    loadSeconds: { ram: 9, ssd: 99, blob: 999 },
  });
  const like = model('like', 0, { ...loaded, rate: addRequest(once, NOW) });
  const cheap = model('cheap', 9, { ...loaded, loadSeconds: { ram: 0.001, ssd: 0.001, blob: 1 } });
  expect(show(decide(state([cheap, like, asked]), NOW))).toEqual(['drop like gpu replaced', 'load asked gpu waiting']);
  // No other candidate: the request is served.
  const residents = [cheap, model('other', 9, loaded)];
  expect(show(decide(state([...residents, asked]), NOW))[0]).toBe('drop cheap gpu replaced');
});

it('replaces without a request only above the hysteresis and the minimum residency', () => {
  const residents = (since: number) => ['a', 'b'].map((id) => model(id, 60, { device: 'gpu0', deviceSince: since }));
  const candidate = (perHour: number) => model('c', perHour);
  expect(decide(state([...residents(NOW - HOUR), candidate(85)]), NOW)).toEqual([]);
  expect(show(decide(state([...residents(NOW - HOUR), candidate(95)]), NOW))).toContain('load c gpu score');
  expect(decide(state([...residents(NOW - 1_000), candidate(95)]), NOW)).toEqual([]);
});

it('A27 loads models before the hour of their language, and a canary', () => {
  let profile = startProfile(NOW - 25 * HOUR);
  for (let minute = 0; minute < 60; minute += 1) profile = addToProfile(profile, NOW - 23 * HOUR + minute * 60_000);
  const at = NOW + HOUR - tierSettings.leadMs;
  const quiet = (id: string) => model(id, 0, { slowRate: { count: 9, at: NOW, halfLifeMs: 24 * HOUR } });
  const known = { profiles: new Map([['en', advanceProfile(profile, at)]]) };
  expect(decide(state([quiet('wu')], known), at - 1)).toEqual([]);
  expect(show(decide(state([quiet('wu')], known), at))).toEqual(['load wu gpu score']);
  const full = [model('a', 90, loaded), model('b', 80, loaded)];
  expect(show(decide(state([...full, model('next', 0, { needed: true })]), NOW))).toContain('load next gpu needed');
});

it('A11 loads from blob through ssd, and keeps roll-back targets in ram', () => {
  const asked = model('asked', 1, { ...waiting, inSsd: false });
  const cold = model('cold', 1);
  const first = decide(state([cold, asked], { ssdBytes: GB }), NOW);
  expect(show(first)).toEqual(['drop cold ssd replaced', 'load asked ssd waiting']);
  const target = model('target', 0, { floor: 'ram' });
  const copies = [model('a', 90, { inRam: true }), target];
  const moves = decide(state(copies, { ramBytes: GB, devices: [] }), NOW);
  expect(show(moves)).toEqual(['drop a ram replaced', 'load target ram floor']);
  expect(decide(state(copies, { ramBytes: GB, devices: [], copying: { model: 'target', tier: 'ram' } }), NOW)).toEqual(
    [],
  );
});

it('A11 explains models with the numbers of their decisions', () => {
  const why = (models: readonly TierModel[], over: Partial<TierState> = {}) =>
    Object.fromEntries([...explain(state(models, over), NOW)].map(([id, residency]) => [id, residency.why]));
  const models = [model('a', 60, { ...loaded, leases: 1 }), model('b', 50, loaded), model('c', 70), model('d', 0)];
  expect(why(models)).toEqual({
    a: 'in use',
    b: 'nothing worth more needs its memory',
    c: 'it is worth less than b',
    d: 'no request is expected soon',
  });
  expect(explain(state(models), NOW).get('c')).toEqual({
    ...{ score: 0.019, rate: 0.019, saves: 1, bytes: GB, leases: 0, why: 'it is worth less than b' },
  });
  const busy = [model('a', 60, { ...loaded, floor: 'gpu' }), model('b', 50, { ...loaded, leases: 1 })];
  const others = [model('c', 0, { waitingSince: NOW }), model('d', 0, { floor: 'ram' })];
  expect(why([...busy, ...others])).toEqual({
    a: 'pinned: all stable revisions fit',
    b: 'in use',
    c: 'requests wait for it; 1000.0 MB are missing, 0.0 MB may be evicted',
    d: 'roll-back target, not below ram; no request is expected soon',
  });
  const loading = [{ id: 'gpu0', bytes: 2 * GB, loading: 'c' }];
  expect(why([model('c', 1), model('d', 0, { needed: true, inSsd: false })], { devices: loading })).toEqual({
    c: 'it is being loaded',
    d: 'the release names it as canary or grey; its files are fetched first',
  });
});

it('a rate halves in its half-life, and a clock that steps back changes nothing', () => {
  const rate = addRequest(addRequest(startRate(HOUR, NOW), NOW), NOW);
  expect(countAt(rate, NOW + HOUR)).toBe(1);
  expect(countAt(rate, NOW - HOUR)).toBe(2);
  let steady = startRate(HOUR, NOW);
  for (let second = 0; second < 86_400; second += 10) steady = addRequest(steady, NOW + second * 1_000);
  expect(perSecond(steady, NOW + 86_400_000)).toBeCloseTo(0.1, 3);
});

it('A27 a profile averages days, forgets an absence, and ignores the hour of the start', () => {
  let profile = startProfile(NOW + 1);
  profile = addToProfile(profile, NOW + 2);
  expect(expectedAt(advanceProfile(profile, NOW + HOUR), NOW)).toBeUndefined();
  for (const day of [1, 2]) {
    for (let n = 0; n < 10 * day; n += 1) profile = addToProfile(profile, NOW + day * 24 * HOUR + n);
  }
  profile = advanceProfile(profile, NOW + 49 * HOUR);
  expect(expectedAt(profile, NOW)).toBeCloseTo(15 / 3_600, 9);
  expect(expectedAt(advanceProfile(profile, NOW + 500 * HOUR), NOW)).toBeCloseTo(7.5 / 3_600, 9);
});

const arbitraryModel = fc.record({
  perHour: fc.integer({ min: 0, max: 100 }),
  bytes: fc.integer({ min: 1, max: 20 }),
  device: fc.constantFrom(undefined, 'gpu0', 'gpu1'),
  leases: fc.integer({ min: 0, max: 1 }),
  floor: fc.constantFrom(undefined, 'gpu', 'ram', 'ssd'),
  waits: fc.boolean(),
  inRam: fc.boolean(),
  inSsd: fc.boolean(),
});

it('A11 no decision overfills a tier or drops a held model', () => {
  fc.assert(
    fc.property(fc.array(arbitraryModel, { maxLength: 12 }), fc.integer({ min: 0, max: 60 }), (all, ram) => {
      const models = all.map(
        ({ perHour, bytes, device, leases, floor, waits, inRam, inSsd }, at): TierModel => ({
          ...model(`m${at}`, perHour, { gpuBytes: bytes, fileBytes: bytes, inRam, inSsd: inSsd || inRam || !!device }),
          ...(device && { device, deviceSince: 0, leases }),
          ...(floor && { floor }),
          ...(waits && !device && waiting),
        }),
      );
      const bytesOf = (held: (one: TierModel) => boolean) =>
        models.filter(held).reduce((sum, one) => sum + one.gpuBytes, 0);
      const devices = ['gpu0', 'gpu1'].map((id) => ({ id, bytes: bytesOf((one) => one.device === id) + 5 }));
      const bounds = {
        ramBytes: Math.max(
          ram,
          bytesOf((one) => one.inRam),
        ),
        ssdBytes: bytesOf((one) => one.inSsd) + 5,
      };
      const moves = decide(state(models, { devices, ...bounds }), NOW);
      const byId = new Map(models.map((one) => [one.id, one]));
      const spaces = [
        ...devices.map(({ id, bytes }) => ['gpu', id, bytes] as const),
        ['ram', undefined, bounds.ramBytes] as const,
        ['ssd', undefined, bounds.ssdBytes] as const,
      ];
      for (const [tier, device, bytes] of spaces) {
        const here = moves.filter((move) => move.tier === tier && move.device === device);
        const before = bytesOf((one) =>
          tier === 'gpu' ? one.device === device : tier === 'ram' ? one.inRam : one.inSsd,
        );
        const change = here.reduce(
          (sum, { act, model: id }) => sum + (act === 'load' ? 1 : -1) * byId.get(id)!.gpuBytes,
          0,
        );
        expect(before + change).toBeLessThanOrEqual(bytes);
        expect(here.filter(({ act }) => act === 'load').length).toBeLessThanOrEqual(1);
      }
      const dropped = moves.flatMap(({ act, model: id }) => (act === 'drop' ? id : []));
      expect(new Set(dropped).size).toBe(dropped.length);
      for (const { act, model: id, tier } of moves) {
        const one = byId.get(id)!;
        if (act === 'load') expect(dropped).not.toContain(id);
        if (act === 'load' && tier !== 'ssd') expect(one.inSsd).toBe(true);
        if (act === 'drop' && tier === 'gpu') expect([one.leases, one.floor === 'gpu']).toEqual([0, false]);
        if (act === 'drop' && tier === 'ssd')
          expect([one.inRam, one.device, one.floor]).toEqual([false, undefined, undefined]);
      }
    }),
    { numRuns: runs(200, 2_000) },
  );
});
