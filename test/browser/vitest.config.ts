import path from 'node:path';
import { defineConfig } from 'vitest/config';

// Pages in a real browser. A run of its own, because it needs Chromium.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'browser',
    environment: 'node',
    pool: 'forks',
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/browser/install.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 15_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    fileParallelism: false,
    passWithNoTests: false,
  },
});
