import { describe, expect, it } from 'vitest';
import { firstSeed, seeds } from '../../seeds.ts';
import { simulate } from './simulate.ts';

// Most of the seeds; the others are those of the end of a year, in a file of its own: files run at the same time.
const stories = Math.ceil(seeds * 0.75);

describe('C9 C12 the log under trouble', () => {
  it(`nothing is lost, nothing is there twice, no size has two trees: ${stories} stories`, {
    timeout: 300_000,
  }, async () => {
    let committed = 0;
    for (let seed = firstSeed; seed < firstSeed + stories; seed += 1) {
      const told = await simulate(seed, false);
      committed += told.committed;
      expect(told.problems, `SEED=${seed} SEEDS=1`).toEqual([]);
    }
    // Stories in which nothing happens would all end well.
    expect(committed).toBeGreaterThan(stories);
  });
});
