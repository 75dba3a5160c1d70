import path from 'node:path';
import { defineConfig } from 'vitest/config';

// Images, which take seconds to build, and arm64 under emulation, which is about twenty times slower than a processor.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'image',
    environment: 'node',
    pool: 'forks',
    include: ['test/image/**/*.test.ts'],
    globalSetup: ['test/image/install.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 240_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
  },
});
