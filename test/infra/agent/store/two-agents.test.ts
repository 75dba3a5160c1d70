// Two agents on one store, in simulated time. A seed makes each run reproducible.
import { expect, it } from 'vitest';
import type { Source, StoreOptions } from '../../../../infra/pool/agent/store/contract.ts';
import { World } from '../../../fault/batch/world.ts';
import { MemoryDisk, type Step } from '../../../fault/tier/memory-disk.ts';
import { firstSeed, runs } from '../../../seeds.ts';
import { makeFile, openStore, sha256 } from './fixtures.ts';

const STORE = '/store';
/** Holds two of the files. */
const STORE_BYTES = 6_000;
const FILES = Array.from({ length: 4 }, () => makeFile(3_000));
const FETCHES = 6;
const RUNS = runs(20, 1_000);
/** Time limit of one run, ms: far over the slowest. */
const RUN_MS = 500;
const PIECE_BYTES = 1_000;
/** Longest pause of the source, over the age at which a lock is stale. */
const PAUSE_MS = 60_000;

/** Runs two agents that fetch files at once. */
async function runAgents(seed: number) {
  const world = new World(seed);
  const memory = new MemoryDisk(() => world.now);
  const counts = { fetched: 0, most: 0, doubled: 0 };
  const refused = new Set<string>();
  const downloading = new Set<string>();
  const used = () =>
    [...memory.files(STORE)].reduce((sum, [name, { length }]) => (name.endsWith('.lock') ? sum : sum + length), 0);
  const step: Step = async (effect) => {
    await world.turn();
    try {
      return effect();
    } finally {
      counts.most = Math.max(counts.most, used());
    }
  };
  const source: Source = {
    async *read({ digest }, from) {
      if (downloading.has(digest)) counts.doubled += 1;
      downloading.add(digest);
      try {
        const { content } = FILES.find((file) => file.digest === digest)!;
        for (let at = from; at < content.length; at += PIECE_BYTES) {
          await (world.bad(0.05) ? world.sleep(world.between(0, PAUSE_MS)) : world.turn());
          if (world.bad(0.02)) throw new Error('reset');
          yield content.subarray(at, at + PIECE_BYTES);
        }
      } finally {
        downloading.delete(digest);
      }
    },
  };
  const every: StoreOptions['every'] = (ms, work) => {
    let isOn = true;
    world.go(async () => {
      for (await world.sleep(ms); isOn; await world.sleep(ms)) await work();
    });
    return () => {
      isOn = false;
    };
  };
  const agent = async () => {
    const clock = { now: () => world.now, sleep: (ms: number) => world.sleep(ms), every };
    const store = await openStore({ folder: STORE, bytes: STORE_BYTES, disk: memory.open(step), ...clock });
    for (let at = 0; at < FETCHES; at += 1) {
      const done = await store.fetch(world.pick(FILES), source);
      if (!done.ok) refused.add(done.refusal.reason);
      else counts.fetched += 1;
      if (world.bad(0.5)) await world.sleep(world.between(0, 2_000));
      if (done.ok) done.value.release();
    }
  };
  world.go(agent);
  world.go(agent);
  await world.run();
  const files = [...memory.files(`${STORE}/files`)];
  return { ...counts, refused: [...refused], wrong: files.filter(([name, bytes]) => sha256(bytes) !== name) };
}

it(
  'A11 two agents on one store share downloads within its bytes',
  async () => {
    let fetched = 0;
    for (let seed = firstSeed; seed < firstSeed + RUNS; seed += 1) {
      const run = await runAgents(seed);
      expect(run.most, `seed ${seed}`).toBeLessThanOrEqual(STORE_BYTES);
      expect(run, `seed ${seed}`).toMatchObject({ doubled: 0, wrong: [] });
      for (const reason of run.refused) expect(['source_failed', 'store_full']).toContain(reason);
      fetched += run.fetched;
    }
    expect(fetched).toBeGreaterThan(RUNS * FETCHES);
  },
  10_000 + RUNS * RUN_MS,
);
