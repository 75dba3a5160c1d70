import path from 'node:path';
import { defineConfig } from 'vitest/config';

// Agent and engine on arm64 under emulation: about twenty times slower than the processor itself.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'arm64',
    environment: 'node',
    pool: 'forks',
    include: ['test/arm64/**/*.test.ts'],
    globalSetup: ['test/arm64/install.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 240_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
  },
});
