import path from 'node:path';
import { defineConfig } from 'vitest/config';

// Go's own packages as a second opinion. A run of its own, because it needs Go and downloads a module.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'go',
    environment: 'node',
    pool: 'forks',
    include: ['test/go/**/*.test.ts'],
    globalSetup: ['test/go/install.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
  },
});
