// T4: every accepted upload ends exactly once in an outcome, under all faults. The decisions and steps of the
// back office run unchanged on a model of its stores; each of their calls may fail, fail after its effect, be
// slow, duplicated or reordered. `SEEDS` is the number of histories; each is reproducible.
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { firstSeed, seeds as SEEDS } from '../../seeds.ts';
import { type Outcome, runHistories, type Share } from './histories.ts';

/** Time limit of one history, ms: far over the slowest. */
const HISTORY_MS = 100;
/** Smallest share for which a thread pays off. */
const SHARE_MIN = 1_000;

/** The seeds in equal shares, one for each core. */
function sharesOf(first: number, count: number): Share[] {
  const threads = Math.max(1, Math.min(availableParallelism(), Math.floor(count / SHARE_MIN)));
  const most = Math.ceil(count / threads);
  return Array.from({ length: threads }, (_, share) => ({
    first: first + share * most,
    last: Math.min(first + (share + 1) * most, first + count) - 1,
  }));
}

const inThread = (share: Share): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const thread = new Worker(path.join(import.meta.dirname, 'histories.ts'), { workerData: { share } });
    thread.once('message', resolve);
    thread.once('error', reject);
  });

describe('T4: a batch of uploads on stores that fail', () => {
  it(
    `none lost, none twice, bytes and usage booked once, in ${SEEDS} histories`,
    async () => {
      const [first, ...others] = sharesOf(firstSeed, SEEDS);
      const told = await Promise.all([runHistories(first as Share), ...others.map(inThread)]);
      for (const { wrong } of told) if (wrong) expect(wrong.why, `seed ${wrong.seed}`).toEqual([]);
      // The histories are rough enough to see every end, and not so rough that nothing gets done.
      if (SEEDS < 200) return;
      const ends = told.flatMap((one) => Object.entries(one.ends));
      const count = (word?: string) =>
        ends.reduce((sum, [end, times]) => sum + (word === undefined || end === word ? times : 0), 0);
      expect(count('done') / count()).toBeGreaterThan(0.5);
      for (const end of ['cancelled', 'expired', 'audio_unsupported']) expect(count(end), end).toBeGreaterThan(0);
    },
    10_000 + SEEDS * HISTORY_MS,
  );
});
