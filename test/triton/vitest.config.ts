import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { slowestFirst } from '../slowest-first.ts';

// The real Triton: installed once into the state folder, started by each file for itself. A run of its own:
// it downloads packages, and a slow machine should not pay for it in every `npm test`.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'triton',
    environment: 'node',
    pool: 'forks',
    include: ['test/triton/**/*.test.ts'],
    globalSetup: ['test/triton/install.ts', 'test/natural.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 20_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    // Each file mostly waits for its server.
    maxWorkers: 2,
    // The contract and the stack start many models; a quick file between them keeps these starts apart.
    sequence: { sequencer: slowestFirst('contract.test.ts', 'start.test.ts', 'stack.test.ts', 'agent.test.ts') },
    passWithNoTests: false,
  },
});
