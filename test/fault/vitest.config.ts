import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { slowestFirst } from '../slowest-first.ts';

// Faults of whole stacks: parts killed, stalled and cut off. A run of its own: faults take time (expiring
// leases, redelivering queues), and `npm test` should not wait for them.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'fault',
    environment: 'node',
    pool: 'forks',
    include: ['test/fault/**/*.test.ts'],
    // `npm test` runs the simulations, which start no process, and `npm run test:outage` the matrix, which takes half
    // an hour.
    exclude: ['test/fault/**/simulation.test.ts', 'test/fault/outage/matrix/**', '**/node_modules/**'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    // Each stack that starts again loads its models, which takes a core.
    maxWorkers: 2,
    sequence: {
      sequencer: slowestFirst(
        ...['server.test.ts', 'clients.test.ts', 'client.test.ts', 'recordings.test.ts'],
        ...['lost-work.test.ts', 'work.test.ts'],
      ),
    },
    passWithNoTests: false,
  },
});
