import path from 'node:path';
import { defineConfig } from 'vitest/config';

// Foreign clients, unmodified, against the whole stack. A run of its own, because it installs Python packages.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'clients',
    environment: 'node',
    pool: 'forks',
    include: ['test/clients/**/*.test.ts'],
    globalSetup: ['test/clients/install.ts', 'test/stack/shared.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 30_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    // One stack for all files except the one that kills parts: two would slow each other.
    fileParallelism: false,
    passWithNoTests: false,
  },
});
