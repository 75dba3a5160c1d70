import { describe, expect, it } from 'vitest';
import { placeOf } from '../../../edge/place.ts';
import { rttMs } from '../../../edge/routing/distance.ts';
import type { RouteMemory } from '../../../edge/routing/memory.ts';
import { pick, type RouteRequest } from '../../../edge/routing/pick.ts';
import type { RosterEntry } from '../../../shared/pool/heartbeat.ts';
import { randomOf } from '../../fake/random.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

const none: RouteMemory = new Map();
const runs = 400;

/** Counts first choices by agent, and the rules that decided them. */
function choices(asked: RouteRequest, entries: readonly RosterEntry[], random = randomOf(7)) {
  const counts: Record<string, number> = {};
  const rules = new Set<string>();
  for (let run = 0; run < runs; run++) {
    const picked = pick(asked, { snapshots: [snapshot(entries)], memory: none, now, random });
    if (!picked.ok) throw new Error(picked.refusal.reason);
    const [first] = picked.value;
    const name = String(first?.entry.description.agent);
    counts[name] = (counts[name] ?? 0) + 1;
    rules.add(String(first?.why));
  }
  return { counts, rules: [...rules] };
}

const amsterdam = { latitude: 52.4, longitude: 4.9 };
const virginia = { latitude: 39, longitude: -77.5 };
const hongKong = { latitude: 22.3, longitude: 114.2 };
const busy = { busy: 4, queued: { realtime: 20, interactive: 20, default: 20, batch: 20 } };

describe('C6 distance', () => {
  it('estimates round trips by the great circle', () => {
    expect(rttMs(amsterdam, amsterdam)).toBe(0);
    expect(rttMs(amsterdam, virginia)).toBeCloseTo(rttMs(virginia, amsterdam));
    // Measured on public networks: 80 to 100 ms and 170 to 250 ms.
    expect(Math.round(rttMs(amsterdam, virginia))).toBe(93);
    expect(Math.round(rttMs(virginia, hongKong))).toBe(195);
    expect(rttMs({ latitude: 0, longitude: 180 }, { latitude: 0, longitude: -180 })).toBeCloseTo(0);
  });

  it('reads a place that Cloudflare gives, and none elsewhere', () => {
    expect(placeOf({ cf: { latitude: '52.4', longitude: '4.9' } })).toEqual(amsterdam);
    expect(placeOf({ cf: { latitude: 'x', longitude: '4.9' } })).toBeUndefined();
    expect(placeOf({ cf: { latitude: '99', longitude: '4.9' } })).toBeUndefined();
    expect(placeOf({})).toBeUndefined();
  });

  it.each([{}, { live: true }])('prefers the nearer of two idle agents, %j', (change) => {
    const models = [model({ live: true })];
    const entries = [agent('near', { location: amsterdam, models }), agent('far', { location: virginia, models })];
    const { counts, rules } = choices(request({ ...change, place: amsterdam }), entries);
    expect(counts).toEqual({ near: runs });
    expect(rules).toEqual(['nearer of 2']);
    expect(Object.keys(choices(request(change), entries).counts)).toHaveLength(2);
  });

  it('yields to a queue that lasts longer than the round trip', () => {
    const entries = [agent('near', { location: amsterdam }, busy), agent('far', { location: virginia })];
    expect(choices(request({ place: amsterdam }), entries).counts).toEqual({ far: runs });
  });
});

describe('A9 realtime speech', () => {
  const fleet = (load = {}) => [
    agent('h100', { device: 'h100' }, load),
    agent('l4', { device: 'l4' }),
    agent('cpu', { accelerator: 'cpu', slots: 64 }),
  ];

  it('takes the fastest device first', () => {
    const { counts } = choices(request({ class: 'realtime' }), fleet());
    expect(counts.cpu).toBeUndefined();
    expect(counts.h100).toBe(runs);
  });

  it('draws faster devices more often in a large fleet', () => {
    const devices = ['h100', 'a100', 'l4', 't4'].flatMap((device) => [1, 2, 3].map((at) => ({ device, at })));
    const { counts } = choices(
      request({ class: 'realtime' }),
      devices.map(({ device, at }) => agent(`${device}-${at}`, { device })),
    );
    const of = (device: string) => [1, 2, 3].reduce((sum, at) => sum + (counts[`${device}-${at}`] ?? 0), 0);
    expect(of('h100')).toBeGreaterThan(of('a100'));
    expect(of('a100')).toBeGreaterThan(of('l4'));
    expect(of('h100') / runs).toBeGreaterThan(0.7);
  });

  it.each([
    ['a100-80-3g', 'a100-80-1g'],
    ['a100-80', 'a100-80-3g'],
    ['h100-2g', 'a100-80-2g'],
    ['a100-40', 'l4'],
  ])('A12: takes %s before %s, GPUs and MIG slices by what they compute', (faster, slower) => {
    const entries = [agent('faster', { device: faster }), agent('slower', { device: slower })];
    expect(choices(request({ class: 'realtime' }), entries).counts).toEqual({ faster: runs });
  });

  it('takes a slower device while the fastest is saturated', () => {
    expect(choices(request({ class: 'realtime' }), fleet(busy)).counts).toEqual({ l4: runs });
  });

  it('draws full accelerators by their slots', () => {
    const full = { busy: 64, serviceMs: 100 };
    const entries = ['h100', 'h100', 'l4', 'l4'].map((device, at) => agent(`${device}-${at}`, { device }, full));
    const { counts } = choices(request({ class: 'realtime' }), entries);
    // Both drawn agents are slower ones in a sixth of the draws; by device it would be a fiftieth.
    expect(((counts['l4-2'] ?? 0) + (counts['l4-3'] ?? 0)) / runs).toBeGreaterThan(0.1);
  });

  it('ignores less urgent requests that wait at an agent', () => {
    const waits = { realtime: 0, interactive: 0, default: 0, batch: 50 };
    const entries = [
      agent('behind', {}, { busy: 54, queued: waits }),
      agent('ahead', {}, { busy: 5, queued: { ...waits, realtime: 2 } }),
    ];
    expect(choices(request({ class: 'realtime' }), entries).counts).toEqual({ behind: runs });
  });

  it('opens streams where the fastest devices have none left', () => {
    const models = [model({ live: true })];
    const listed = (name: string, device: string, streams: number) =>
      agent(name, { device, models, streams: 100 }, { streams });
    const cpu = agent('cpu', { accelerator: 'cpu', models, streams: 100 });
    const full = [listed('one', 'h100', 100), listed('two', 'h100', 100)];
    const asked = request({ class: 'realtime', live: true });
    expect(choices(asked, [...full, listed('l4', 'l4', 60)]).counts).toEqual({ l4: runs });
    expect(choices(asked, [...full, cpu]).counts).toEqual({ cpu: runs });
    expect(choices(asked, [listed('half', 'l4', 50), cpu]).counts).toEqual({ half: runs });
    expect(choices(asked, [listed('fuller', 'l4', 70), cpu]).counts).toEqual({ cpu: runs });
  });

  it('takes any device in other classes', () => {
    const { counts } = choices(request({ class: 'interactive' }), fleet().slice(0, 2));
    expect(counts.l4).toBeGreaterThan(runs / 3);
  });
});

describe('T5 a model that a processor serves', () => {
  const gpu = agent('gpu');
  const cpu = (load = {}) => agent('cpu', { accelerator: 'cpu' }, load);

  it.each(['default', 'batch'] as const)('goes to the idle processor in class %s', (name) => {
    const { counts, rules } = choices(request({ class: name }), [gpu, cpu()]);
    expect(counts).toEqual({ cpu: runs });
    expect(rules).toEqual(['idle processor of 2']);
  });

  it('goes to both while the processor has no free slot', () => {
    const { counts } = choices(request(), [gpu, cpu({ busy: 4 })]);
    expect(counts.gpu).toBeGreaterThan(runs / 3);
  });

  it('goes to both in class interactive', () => {
    expect(choices(request({ class: 'interactive' }), [gpu, cpu()]).counts.gpu).toBeGreaterThan(runs / 3);
  });
});

describe('A14 an agent above 80 % of its power budget', () => {
  const gpu = (power: number) => agent('gpu', {}, { power });
  const cpu = agent('cpu', { accelerator: 'cpu', slots: 1 });

  it.each(['realtime', 'interactive', 'batch'] as const)('hands %s work to a processor', (name) => {
    expect(choices(request({ class: name }), [gpu(0.81), cpu]).counts).toEqual({ cpu: runs });
  });

  it('keeps its work at 80 %, and without a processor', () => {
    expect(choices(request({ class: 'realtime' }), [gpu(0.8), cpu]).counts).toEqual({ gpu: runs });
    const { counts } = choices(request(), [gpu(0.9), agent('other')]);
    expect(counts.gpu).toBeGreaterThan(runs / 3);
  });
});

describe('C6 price', () => {
  const cheap = (load = {}) => agent('cheap', { price: 1 }, load);
  const dear = agent('dear', { price: 9 });

  it('decides between equal costs in class batch', () => {
    const { counts, rules } = choices(request({ class: 'batch' }), [cheap(), dear]);
    expect(counts).toEqual({ cheap: runs });
    expect(rules).toEqual(['cheaper of 2']);
  });

  it('counts neither in class interactive nor against load', () => {
    expect(choices(request({ class: 'interactive' }), [cheap(), dear]).counts.dear).toBeGreaterThan(runs / 3);
    expect(choices(request({ class: 'batch' }), [cheap(busy), dear]).counts).toEqual({ dear: runs });
  });
});

describe('A20 a degraded agent', () => {
  it('gets work only where no other one is idle', () => {
    const entries = (load = {}) => [agent('whole', {}, load), agent('degraded', {}, { degraded: 1 })];
    expect(choices(request(), entries()).counts).toEqual({ whole: runs });
    expect(choices(request(), entries(busy)).counts).toEqual({ degraded: runs });
  });
});

describe('C6 two choices', () => {
  it('never send all work to the cheapest of many agents', () => {
    const entries = Array.from({ length: 10 }, (_, at) => agent(`agent-${at}`, { price: at }));
    const { counts } = choices(request({ class: 'batch' }), entries);
    expect((counts['agent-0'] ?? 0) / runs).toBeLessThan(0.3);
    expect(counts['agent-0']).toBeGreaterThan(counts['agent-8'] ?? 0);
  });
});
