// Every call of a commit, failing in every way there is.
import { describe, expect, it } from 'vitest';
import { Immutable, MemoryStore } from '../../fake/log-store.ts';
import type { Fate } from './scheduler.ts';
import { findFaults, watchCheckpoints } from './simulate.ts';
import { World } from './world.ts';

const START = Date.UTC(2026, 5, 1);
const fates: Fate[] = ['failed', 'failed but done', 'done but denied', 'crash', 'done and crash'];

/** A log of 200 entries, and 100 events that wait for it: the next commit fills a tile. */
async function prepare(): Promise<World> {
  const world = new World(1, START);
  watchCheckpoints(world);
  const outbox = world.addOutbox();
  outbox.next += 199;
  await settleAll(world);
  outbox.next += 100;
  await drive(world, () => world.deliver({}, outbox, true));
  return world;
}

/** Answers everything until `work` is done. */
async function drive(world: World, work: () => Promise<unknown>): Promise<void> {
  let done = false;
  const working = work().finally(() => {
    done = true;
  });
  while (!done)
    await world.turn(
      1,
      () => 'done',
      () => {},
    );
  await working;
}

/** One round in which call number `broken` ends like that. Returns what was called. */
async function roundWith(world: World, broken: number, fate: Fate): Promise<string[]> {
  const calls: string[] = [];
  let alive = true;
  const decide = (what: string): Fate => {
    calls.push(what);
    return calls.length - 1 === broken ? fate : 'done';
  };
  const round = world
    .sequencer({})
    .round()
    .catch(() => {})
    .finally(() => {
      alive = false;
    });
  // A process that crashed never ends its round.
  while (alive) await world.turn(1, decide, () => (alive = false));
  void round;
  return calls;
}

async function settleAll(world: World): Promise<void> {
  const [outbox] = world.outboxes;
  if (!outbox) throw new Error('no outbox');
  for (let tries = 0; outbox.oldest < outbox.next && tries < 50; tries += 1) {
    await drive(world, () => world.deliver({}, outbox, true));
    await drive(world, () => world.sequencer({}).round());
    await drive(world, () => world.deliver({}, outbox, true));
  }
  expect(outbox.oldest).toBe(outbox.next);
}

describe('C9 a commit that breaks off anywhere', () => {
  it.each(fates)('%s, at each of its calls: the log continues unharmed', async (fate) => {
    let most = 1;
    const seen: string[] = [];
    for (let broken = 0; broken < most; broken += 1) {
      const world = await prepare();
      const calls = await roundWith(world, broken, fate);
      // The number of calls of a round that goes through.
      if (broken === 0) most = (await roundWith(await prepare(), -1, 'done')).length;
      seen.push(calls[broken] ?? 'none');
      await settleAll(world);
      expect([...world.problems, ...findFaults(world)], `call ${broken}: ${calls[broken]}`).toEqual([]);
    }
    const kinds = [
      'create log eu/2026/wal/',
      'replace state eu/state',
      'create log eu/2026/tile/0/000',
      'create log eu/2026/tile/entries/000',
    ];
    const later = [
      'create state eu/2026/tile/0/001.p/',
      'create log eu/2026/checkpoints/',
      'replace state eu/2026/checkpoint',
      'remove intake',
      'remove state eu/2026/tile/0/000.p/',
    ];
    for (const kind of [...kinds, ...later])
      expect(
        seen.some((what) => what.startsWith(kind)),
        kind,
      ).toBe(true);
  });
});

describe('C9 locked blobs are never touched', () => {
  it('the storage of these tests refuses to overwrite and to delete', async () => {
    const store = new MemoryStore();
    expect(await store.create('log', 'a', Uint8Array.of(1))).toBe(true);
    expect(await store.create('log', 'a', Uint8Array.of(2))).toBe(false);
    const kept = await store.read('log', 'a');
    await expect(store.replace('log', 'a', Uint8Array.of(2), kept?.version ?? '')).rejects.toThrow(Immutable);
    await expect(store.remove('log', 'a')).rejects.toThrow(Immutable);
  });
});
