import { describe, expect, it } from 'vitest';
import { simulate } from './simulate.ts';

// A part of the seeds; the others have no end of a year.
const seeds = Math.ceil(Number(process.env.SEEDS ?? 200) * 0.25);
const first = Number(process.env.SEED ?? 1);

describe('C9 C12 the end of a year under trouble', () => {
  it(`nothing is lost, nothing is there twice, no size has two trees: ${seeds} stories`, {
    timeout: 120_000,
  }, async () => {
    let committed = 0;
    for (let seed = first; seed < first + seeds; seed += 1) {
      const told = await simulate(seed, true);
      committed += told.committed;
      expect(told.problems, `SEED=${seed} SEEDS=1`).toEqual([]);
    }
    // Stories in which nothing happens would all end well.
    expect(committed).toBeGreaterThan(seeds);
  });
});
