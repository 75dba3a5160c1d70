// The log of checkpoints: what is decided, and what is in the log whatever broke off and whoever wrote.
import { describe, expect, it } from 'vitest';
import { newestState } from '../../../functions/audit/intake/acknowledge.ts';
import { decideHead, type Recorded } from '../../../functions/audit/witness/head-decide.ts';
import { recordHead } from '../../../functions/audit/witness/record-heads.ts';
import { toBase64 } from '../../../shared/audit/base64.ts';
import { HEADS, readHead } from '../../../shared/audit/head.ts';
import { limits } from '../../../shared/limits.ts';
import { runs } from '../../seeds.ts';
import { faults, faultyStore } from './faulty-store.ts';
import { HeadsWorld, START } from './heads-world.ts';
import { randomOf } from './scheduler.ts';

const N = limits.auditHeadMs.value;
const root = (of: number) => new Uint8Array(32).fill(of);
const at = (size: number, of = size, year = 2026) => ({ origin: `audit.example/eu/${year}`, size, root: root(of) });
const recorded = (size: number, of = size): Recorded => ({
  ...{ log: 'audit.example/eu/2026', size, root: toBase64(root(of)), at: START },
});
const shown = (published = 0, accepted = published, of = published, ended = false, year = 2026) => ({
  ...{ year, ended },
  published: published > 0 ? at(published, of, year) : undefined,
  accepted: accepted > 0 ? at(accepted, accepted === published ? of : accepted, year) : undefined,
});

describe('C9 which checkpoint of a region is recorded', () => {
  it.each([
    ['the first there is', undefined, shown(3), START, 'record'],
    ['none before there is one', undefined, shown(0), START, 'wait'],
    ['none that its witnesses have not seen', undefined, shown(3, 0), START, 'wait'],
    ['what witnesses have seen, not what is newer', recorded(3), shown(9, 5), START + N, 'record'],
    ['none that is recorded', recorded(3), shown(3), START + N, 'wait'],
    ['none too soon after the last', recorded(3), shown(5), START + N - 1, 'wait'],
    ['the next when it is time', recorded(3), shown(5), START + N, 'record'],
    ['none older, while witnesses are behind', recorded(3), shown(9, 2), START + N, 'wait'],
    ['none of a log that is shorter, however soon it is looked at', recorded(3), shown(2), START + 1, 'broken'],
    ['none of a log that is gone', recorded(3), shown(0), START + N, 'broken'],
    ['none of a log with another root', recorded(3), shown(3, 3, 8), START + N, 'broken'],
    ['the end of a year before the next', recorded(3), shown(5, 5, 5, true), START + N, 'record'],
    ['the next year once the end is recorded', recorded(5), shown(5, 5, 5, true), START + N, 'next'],
    ['the beginning of a year', recorded(5), shown(2, 2, 2, false, 2027), START + N, 'record'],
  ] as const)('%s', (_what, last, seen, now, kind) => {
    expect(decideHead(last, seen, now).kind).toBe(kind);
  });
});

describe('C9 the log of checkpoints', () => {
  it('says of each region how far its log is, once, and nothing else', async () => {
    const world = new HeadsWorld(['eu', 'us']);
    for (let minute = 0; minute < 3; minute += 1) {
      await world.grow('eu', 2);
      if (minute < 2) await world.grow('us', 3);
      for (let often = 0; often < 3; often += 1) {
        await world.recordAll();
        await world.commit(HEADS);
      }
      world.now += N;
    }
    expect(world.lines).toEqual([]);
    expect(world.faults()).toEqual([]);
    const leaves = world.heads();
    expect(leaves.map((leaf) => `${leaf.p} ${leaf.pseq}`)).toEqual([
      'region/eu 1',
      'region/us 1',
      'region/eu 2',
      'region/us 2',
      'region/eu 3',
    ]);
    for (const leaf of leaves) {
      expect(Object.keys(leaf).sort()).toEqual([
        'by',
        'ep',
        'id',
        'log',
        'p',
        'pseq',
        'root',
        'size',
        't',
        'type',
        'v',
      ]);
    }
  });

  it('goes on in the next year with the end of the last', async () => {
    const world = new HeadsWorld(['eu'], Date.UTC(2026, 11, 31, 23, 59, 30));
    await world.grow('eu', 2);
    await world.record('eu');
    world.now += N;
    // Closes the year, and begins the next.
    for (let rounds = 0; rounds < 4; rounds += 1) await world.commit('eu');
    await world.grow('eu', 1);
    for (let minutes = 0; minutes < 3; minutes += 1) {
      await world.record('eu');
      world.now += N;
    }
    expect(world.faults()).toEqual([]);
    const logs = world.heads().map((leaf) => readHead(leaf)?.head.log);
    expect(logs).toEqual(['audit.example/eu/2026', 'audit.example/eu/2026', 'audit.example/eu/2027']);
  });

  it.each(faults)('%s, at each call of recording and of the commit: every head is there, once', async (fate) => {
    for (const part of ['record', 'commit'] as const) {
      let calls = 0;
      // The first goes through, and tells how many calls there are.
      for (let broken = -1; broken < calls; broken += 1) {
        const world = new HeadsWorld(['eu']);
        await world.grow('eu', 2);
        await world.record('eu');
        world.now += N;
        await world.grow('eu', 2);
        if (part === 'commit') await recordHead(world.desk(), 'eu');
        const store = faultyStore(world.store, broken, fate);
        const work = part === 'record' ? recordHead(world.desk(store), 'eu') : world.commit(HEADS, store);
        await work.catch(() => {});
        if (broken < 0) calls = store.calls.length;
        await world.record('eu');
        expect(world.faults(), `${part}: ${store.calls[broken]}`).toEqual([]);
        expect(world.heads().map(({ pseq }) => pseq)).toEqual([1, 2]);
      }
      expect(calls).toBeGreaterThan(3);
    }
  });

  it('one that another process was faster to record changes nothing, however late it comes', async () => {
    const world = new HeadsWorld(['eu']);
    await world.grow('eu', 2);
    const slow = {
      ...world.plainStore(),
      async create(...given: Parameters<typeof world.store.create>) {
        await world.record('eu');
        await world.grow('eu', 2);
        return world.store.create(...given);
      },
    };
    await recordHead(world.desk(slow), 'eu');
    await world.commit(HEADS);
    expect(world.heads().map(({ pseq }) => pseq)).toEqual([1]);
    expect(await world.store.list('intake', HEADS, 10)).toEqual([]);
    world.now += N;
    await world.record('eu');
    expect(world.faults()).toEqual([]);
    expect(world.heads().map(({ pseq }) => pseq)).toEqual([1, 2]);
  });

  it('several writers, storage that fails, two regions: seeded', async () => {
    for (let seed = 1; seed <= runs(40, 160); seed += 1) {
      const random = randomOf(seed);
      const world = new HeadsWorld(['eu', 'us']);
      for (let step = 0; step < 24; step += 1) {
        const zone = random() < 0.5 ? 'eu' : 'us';
        const fate = faults[Math.floor(random() * faults.length)] ?? 'failed';
        const store = faultyStore(world.store, random() < 0.4 ? Math.floor(random() * 12) : -1, fate);
        const what = random();
        if (what < 0.3) await world.grow(zone, 1 + Math.floor(random() * 3));
        else if (what < 0.6) await recordHead(world.desk(store), zone).catch(() => {});
        else if (what < 0.9) await world.commit(HEADS, store).catch(() => {});
        else await world.commit(zone, store).catch(() => {});
        world.now += Math.floor((random() * N) / 3);
      }
      for (const zone of ['eu', 'us']) {
        await world.grow(zone, 1);
        for (let minutes = 0; minutes < 2; minutes += 1) {
          world.now += N;
          await world.record(zone);
        }
      }
      expect(world.faults(), `seed ${seed}`).toEqual([]);
      for (const zone of ['eu', 'us']) {
        const last = (await newestState(world.store, HEADS))?.heads?.[`region/${zone}`];
        expect(last?.size, `seed ${seed}`).toBe((await newestState(world.store, zone))?.size);
      }
    }
  }, 30_000);

  it('a region that was rolled back is an alarm and recorded no more, shorter, and grown again otherwise', async () => {
    const world = new HeadsWorld(['eu', 'us']);
    await world.grow('eu', 2);
    const before = world.keep('eu');
    await world.grow('eu', 3);
    await world.grow('us', 1);
    await world.recordAll();
    await world.commit(HEADS);
    world.rollBack('eu', before);
    for (const more of [0, 1, 2, 4]) {
      if (more > 0) await world.grow('eu', more);
      await world.grow('us', 1);
      world.now += N;
      world.lines.length = 0;
      await world.recordAll();
      await world.commit(HEADS);
      expect(world.lines).toMatchObject([{ what: 'diverged', zone: 'eu' }]);
    }
    expect(world.lines[0]?.detail).toMatch(/do not go on from/);
    expect(world.heads().filter(({ p }) => p === 'region/eu')).toHaveLength(1);
    expect(world.heads().filter(({ p }) => p === 'region/us')).toHaveLength(5);
  });
});
