import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EJECT_FAILURES, finished, type RouteMemory } from '../../../edge/routing/memory.ts';
import { ATTEMPTS_MAX, type Attempt, pick, type RouteRequest } from '../../../edge/routing/pick.ts';
import type { RosterEntry, Snapshot } from '../../../shared/pool/heartbeat.ts';
import { HEARTBEAT_GONE_MS, HEARTBEAT_UNKNOWN_MS, SNAPSHOT_STALE_MS } from '../../../shared/pool/limits.ts';
import { publicText } from '../../../shared/refusal.ts';
import { randomOf } from '../../fake/random.ts';
import { agent, anyFleet, anyRequest, model, now, request, snapshot } from './fleet.ts';

const none: RouteMemory = new Map();

function attempts(asked: RouteRequest, snapshots: readonly Snapshot[], memory = none, random = randomOf(1)): Attempt[] {
  const result = pick(asked, { snapshots, memory, now, random });
  if (!result.ok) throw new Error(result.refusal.reason);
  return result.value;
}
const agents = (list: readonly Attempt[]) => list.map(({ entry }) => entry.description.agent);

/** Counts first choices by agent in `runs` requests. */
function shares(asked: RouteRequest, entries: readonly RosterEntry[], runs: number, memory = none) {
  const random = randomOf(7);
  const first: Record<string, number> = Object.fromEntries(entries.map(({ description }) => [description.agent, 0]));
  for (let run = 0; run < runs; run++) {
    const [name = ''] = agents(attempts(asked, [snapshot(entries)], memory, random));
    first[name] = (first[name] ?? 0) + 1;
  }
  return first;
}

describe('C6 routing keeps every constraint on every attempt', () => {
  const anyMemory = fc
    .array(fc.record({ name: fc.nat({ max: 23 }), ms: fc.nat({ max: 3000 }), failed: fc.boolean() }), { maxLength: 60 })
    .map((rows) =>
      rows.reduce<RouteMemory>(
        (memory, { name, ms, failed }) =>
          finished(memory, `agent-${name}`, { outcome: failed ? 'failure' : 'healthy', ms, now: now - 100 }),
        none,
      ),
    );

  it('in any fleet, with any memory', () => {
    fc.assert(
      fc.property(anyRequest, anyFleet, anyMemory, fc.integer(), (asked, fleet, memory, seed) => {
        const result = pick(asked, { snapshots: fleet, memory, now, random: randomOf(seed) });
        const fits = fleet.flatMap(({ zone, entries }) => entries.filter((entry) => allowed(asked, entry, zone)));
        if (!result.ok) {
          const stable = fits.filter((entry) => serves(asked, entry, ['full']).length > 0);
          expect(stable).toEqual([]);
          return;
        }
        for (const { entry } of result.value) expect(fits).toContain(entry);
        expect(result.value.length).toBeGreaterThan(0);
        expect(result.value.length).toBeLessThanOrEqual(ATTEMPTS_MAX);
        expect(new Set(agents(result.value)).size).toBe(result.value.length);
        expect(pick(asked, { snapshots: fleet, memory, now, random: randomOf(seed) })).toEqual(result);
      }),
      { numRuns: 1000 },
    );
  });

  function allowed(asked: RouteRequest, entry: RosterEntry, zone: string): boolean {
    const { description, load, heard } = entry;
    return (
      zone === description.zone &&
      asked.zones.includes(zone) &&
      description.suites.includes(asked.suite) &&
      !asked.exclude?.has(description.agent) &&
      !load.draining &&
      load.engineReady &&
      now - heard <= HEARTBEAT_GONE_MS &&
      serves(asked, entry, ['full', 'canary']).length > 0
    );
  }

  function serves({ task, model: name, language, live }: RouteRequest, { description }: RosterEntry, stages: string[]) {
    const wanted = (language ?? 'auto').split('-')[0] ?? '';
    return description.models.filter(
      (one) =>
        one.name === name &&
        one.task === task &&
        stages.includes(one.stage) &&
        (!live || one.live === true) &&
        (wanted === 'auto' || one.languages.some((tag) => (wanted === language ? tag.split('-')[0] : tag) === wanted)),
    );
  }
});

describe('C6 every refusal names the unmet constraint', () => {
  const zh = agent('zh', { models: [model({ name: 'reference-zh', languages: ['zh'] })] });
  const far = agent('far', { zone: 'us' });
  const both = [snapshot([agent('near')]), snapshot([far], 'us')];
  const stale = snapshot([agent('near')], 'eu', now - SNAPSHOT_STALE_MS - 1);
  const silent = agent('near', {}, {}, now - HEARTBEAT_GONE_MS - 1);

  it.each<[string, string, Partial<RouteRequest>, Snapshot[]]>([
    ['model_unknown', 'no agent has the model', { model: 'other' }, both],
    ['model_unfit', 'the model does another task', { task: 'synthesize' }, both],
    [
      'model_unknown',
      'the model is not released',
      {},
      [snapshot([agent('near', { models: [model({ stage: 'grey' })] })])],
    ],
    ['residency_mismatch', 'only another zone has it', {}, [snapshot([zh]), snapshot([far], 'us')]],
    ['residency_mismatch', 'the zone is none of ours', { zones: ['cn'] }, both],
    ['no_pool', 'the zone of the tenant is down', {}, [snapshot([]), snapshot([far], 'us')]],
    ['model_unknown', 'a roster lists an agent of another zone', {}, [snapshot([far])]],
    ['language_unknown', 'the model speaks another language', { language: 'fr' }, both],
    ['no_pool', 'no agent is listed', {}, [snapshot([])]],
    ['no_pool', 'there is no snapshot', {}, []],
    ['no_pool', 'the snapshot is stale', {}, [stale]],
    ['no_pool', 'the agent is silent', {}, [snapshot([silent])]],
    ['no_pool', 'the agent is draining', {}, [snapshot([agent('near', {}, { draining: true })])]],
    ['no_pool', 'the engine is not ready', {}, [snapshot([agent('near', {}, { engineReady: false })])]],
    ['no_pool', 'the suite is not opened there', { suite: 0xf001 }, both],
    ['no_pool', 'all were tried', { exclude: new Set(['near']) }, both],
    ['no_pool', 'only a canary serves it', {}, [snapshot([agent('near', { models: [model({ stage: 'canary' })] })])]],
  ])('%s when %s', (reason, _, change, snapshots) => {
    const result = pick(request(change), { snapshots, memory: none, now, random: randomOf(1) });
    expect(result).toMatchObject({ ok: false, refusal: { reason } });
    if (!result.ok) expect(publicText(result.refusal)).not.toMatch(/[{}]/);
  });

  it('accepts an agent of unknown load', () => {
    const quiet = agent('near', {}, {}, now - HEARTBEAT_UNKNOWN_MS - 1);
    expect(agents(attempts(request(), [snapshot([quiet])]))).toEqual(['near']);
  });

  it('keeps routing by an old snapshot while the roster cannot be reached', () => {
    const at = now - SNAPSHOT_STALE_MS + 1;
    expect(agents(attempts(request(), [snapshot([agent('near', {}, {}, at)], 'eu', at)]))).toEqual(['near']);
  });
});

describe('C6 the second attempt', () => {
  it('goes to another pool when there is one', () => {
    const pool = { pool: 'same' };
    const entries = [agent('a', pool), agent('b', pool), agent('c', { pool: 'other' })];
    for (let seed = 0; seed < 50; seed++) {
      const pools = attempts(request(), [snapshot(entries)], none, randomOf(seed)).map(
        ({ entry }) => entry.description.pool,
      );
      expect(new Set(pools).size).toBe(2);
    }
  });

  it('goes to another agent of the only pool otherwise', () => {
    const entries = [agent('a', { pool: 'same' }), agent('b', { pool: 'same' })];
    expect(agents(attempts(request(), [snapshot(entries)])).sort()).toEqual(['a', 'b']);
  });
});

describe('C6 load', () => {
  const runs = 4000;

  it('follows slots when nothing else differs, within binomial bounds', () => {
    const slots = { a: 16, b: 8, c: 4, d: 4 };
    const first = shares(
      request(),
      Object.entries(slots).map(([name, count]) => agent(name, { slots: count })),
      runs,
    );
    for (const [name, count] of Object.entries(slots)) {
      const expected = count / 32;
      const bound = 4.5 * Math.sqrt((expected * (1 - expected)) / runs);
      expect(Math.abs((first[name] ?? 0) / runs - expected)).toBeLessThan(bound);
    }
  });

  it('leaves a queue, but never runs to the single best agent', () => {
    const queued = { realtime: 0, interactive: 0, default: 50, batch: 0 };
    const first = shares(request(), [agent('a', {}, { busy: 4, queued }), agent('b'), agent('c'), agent('d')], runs);
    expect(first.a).toBe(0);
    for (const name of ['b', 'c', 'd']) expect((first[name] ?? 0) / runs).toBeGreaterThan(0.25);
  });

  it('counts only the queue of its own class and above', () => {
    const queued = { realtime: 0, interactive: 0, default: 0, batch: 50 };
    const entries = [agent('a', {}, { queued }), agent('b')];
    expect(shares(request({ class: 'interactive' }), entries, 400).a).toBeGreaterThan(100);
    expect(shares(request({ class: 'batch' }), entries, 400).a).toBe(0);
  });

  it('believes an old report less', () => {
    const queued = { realtime: 0, interactive: 0, default: 50, batch: 0 };
    const entries = [agent('a', {}, { queued }, now - 9_500), agent('b')];
    expect(shares(request(), entries, 400).a).toBeGreaterThan(100);
  });

  it('leaves an agent that was slow, and tries it again later', () => {
    const entries = [agent('a'), agent('b')];
    const slow = finished(finished(none, 'a', { outcome: 'healthy', ms: 1000, now }), 'b', {
      outcome: 'healthy',
      ms: 100,
      now,
    });
    const long = finished(finished(none, 'a', { outcome: 'healthy', ms: 1000, now: now - 60_000 }), 'b', {
      outcome: 'healthy',
      ms: 100,
      now,
    });
    expect(shares(request(), entries, 400, slow).a).toBe(0);
    expect(shares(request(), entries, 400, long).a).toBeGreaterThan(100);
  });
});

describe('C6 an ejected agent', () => {
  const failing = Array.from({ length: EJECT_FAILURES }).reduce<RouteMemory>(
    (memory) => finished(memory, 'a', { outcome: 'failure', ms: 5, now }),
    none,
  );

  it('gets no attempt, not even a second one', () => {
    const entries = [agent('a'), agent('b')];
    for (let seed = 0; seed < 20; seed++)
      expect(agents(attempts(request(), [snapshot(entries)], failing, randomOf(seed)))).toEqual(['b']);
  });

  it('is tried when it is the only agent of its zone', () => {
    const snapshots = [snapshot([agent('a')]), snapshot([agent('b', { zone: 'us' })], 'us')];
    expect(agents(attempts(request(), snapshots, failing))).toEqual(['a']);
    expect(agents(attempts(request({ zones: ['eu', 'us'] }), snapshots, failing)).sort()).toEqual(['a', 'b']);
  });
});

describe('A9 real-time speech goes to accelerators first', () => {
  const gpu = (load = {}) => agent('gpu', {}, load);
  const cpu = agent('cpu', { accelerator: 'cpu', slots: 64 });

  it.each<Partial<RouteRequest>>([{ class: 'realtime' }, { realtime: true }])('for %j', (change) => {
    expect(shares(request(change), [gpu(), cpu], 200)).toEqual({ gpu: 200, cpu: 0 });
  });

  it('spills when all accelerators are saturated', () => {
    const full = { busy: 4, queued: { realtime: 20, interactive: 0, default: 0, batch: 0 } };
    expect(shares(request({ class: 'realtime' }), [gpu(full), cpu], 200)).toEqual({ gpu: 0, cpu: 200 });
  });

  it('falls back to a processor without another accelerator', () => {
    expect(agents(attempts(request({ class: 'realtime' }), [snapshot([gpu(), cpu])]))).toEqual(['gpu', 'cpu']);
  });
});
