// T4: every accepted upload ends exactly once in an outcome, whatever fails on the way. The decisions and steps of the
// back office run unchanged on a model of its stores; every call of theirs may fail, fail but have happened, be slow,
// come twice or in another order. `SEEDS` says how many histories are tried; each is the same every time.
import { describe, expect, it } from 'vitest';
import { seeds as SEEDS } from '../../seeds.ts';
import { findWrong } from './invariant.ts';
import { Simulation } from './simulation.ts';

const FIRST = Number(process.env.FIRST_SEED ?? 1);
/** Of one history, in milliseconds: far over what the slowest takes. */
const HISTORY_MS = 100;
/** Histories after which the runner may say that it is still there: they leave nobody else a turn. */
const BREATH = 100;

async function history(seed: number, clients = 1 + (seed % 6)): Promise<Simulation> {
  const simulation = new Simulation(seed);
  await simulation.run((one) => {
    for (let client = 0; client < clients; client += 1) one.client(client);
  });
  return simulation;
}

describe('T4: a batch of uploads on stores that fail', () => {
  it(
    `none lost, none twice, bytes accounted for, in ${SEEDS} histories`,
    async () => {
      const statuses: Record<string, number> = {};
      for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
        const simulation = await history(seed).catch((error: unknown) => {
          throw new Error(`seed ${seed}`, { cause: error });
        });
        if (seed % BREATH === 0) await new Promise((resolve) => setImmediate(resolve));
        const wrong = findWrong(simulation);
        if (wrong.length > 0) expect(wrong, `seed ${seed}`).toEqual([]);
        for (const { upload } of simulation.sent) {
          const row = simulation.record(upload);
          const word = row?.state.refusal?.reason ?? row?.state.status ?? 'none';
          statuses[word] = (statuses[word] ?? 0) + 1;
        }
      }
      // The histories are rough enough to see every end, and not so rough that nothing gets done.
      if (SEEDS >= 200) {
        const total = Object.values(statuses).reduce((sum, count) => sum + count, 0);
        expect((statuses.done ?? 0) / total).toBeGreaterThan(0.5);
        expect(Object.keys(statuses)).toEqual(
          expect.arrayContaining(['done', 'cancelled', 'expired', 'audio_unsupported']),
        );
      }
    },
    10_000 + SEEDS * HISTORY_MS,
  );
});
