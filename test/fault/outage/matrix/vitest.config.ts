import path from 'node:path';
import { defineConfig } from 'vitest/config';

// All outages of `scenarios.ts`, one stack a file, one file at a time: the figures of RESULTS.md come from an
// otherwise idle machine. A larger machine runs files in parallel with `--maxWorkers=4`, and several machines
// with `--shard`.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../../../..'),
  test: {
    name: 'outage',
    environment: 'node',
    pool: 'forks',
    include: ['test/fault/outage/matrix/*.test.ts'],
    setupFiles: ['test/hermetic.ts'],
    // An outage of a minute, two minutes for the recovery and two for open work.
    testTimeout: 480_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
    maxWorkers: 1,
    passWithNoTests: false,
  },
});
