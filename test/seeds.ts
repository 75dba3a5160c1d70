// Seeds of a seeded suite: 200, or `SEEDS` of the environment (`npm run test:soak`: 10,000).

export const seeds = Number(process.env.SEEDS ?? 200);

/** The first of them: `SEED` of what failed, with `SEEDS=1`, tells it again. */
export const firstSeed = Number(process.env.SEED ?? 1);

/** Runs of a property: `usual` where developers wait for it, more in proportion to `SEEDS`, but not over `most`. */
export const runs = (usual: number, most: number): number =>
  Math.min(most, Math.max(Math.min(usual, seeds), Math.round((usual * seeds) / 200)));
