import { describe, expect, it } from 'vitest';
import { simulate } from './simulate.ts';

// Most of the seeds; the others are those of the end of a year, in a file of its own: files run at the same time.
const seeds = Math.ceil(Number(process.env.SEEDS ?? 200) * 0.75);
const first = Number(process.env.SEED ?? 1);

describe('C9 C12 the log under trouble', () => {
  it(`nothing is lost, nothing is there twice, no size has two trees: ${seeds} stories`, {
    timeout: 120_000,
  }, async () => {
    let committed = 0;
    for (let seed = first; seed < first + seeds; seed += 1) {
      const told = await simulate(seed, false);
      committed += told.committed;
      expect(told.problems, `SEED=${seed} SEEDS=1`).toEqual([]);
    }
    // Stories in which nothing happens would all end well.
    expect(committed).toBeGreaterThan(seeds);
  });
});
