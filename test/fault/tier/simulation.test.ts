// Revisions between tiers, on simulated storage, disk and engine. `SEEDS` is the number of runs; each is reproducible.
import { expect, it } from 'vitest';
import { firstSeed, seeds } from '../../seeds.ts';
import { TierSimulation } from './simulation.ts';

/** Time limit of one run, ms: far over the slowest. */
const RUN_MS = 500;

it(
  'A11 A16 C7 C8 keeps every revision in a tier and serves verified ones only',
  async () => {
    const counts = { answered: 0, refused: 0, agents: 0, engines: 0 };
    for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
      const simulation = new TierSimulation(seed);
      await simulation.run();
      expect([...new Set(simulation.wrong)], `seed ${seed}`).toEqual([]);
      for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += simulation.counts[name];
    }
    // The runs are rough enough to kill every part, and not so rough that no request is answered.
    if (seeds < 200) return;
    expect(counts.answered).toBeGreaterThan(10 * counts.refused);
    expect(counts.agents).toBeGreaterThan(2 * seeds);
    expect(counts.engines).toBeGreaterThan(seeds);
  },
  10_000 + seeds * RUN_MS,
);
