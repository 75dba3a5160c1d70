import path from 'node:path';
import { defineConfig } from 'vitest/config';

// Recordings made and decoded by ffmpeg, and of a person, heard by Whisper. A run of its own, because it needs packages.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'formats',
    environment: 'node',
    pool: 'forks',
    include: ['test/formats/**/*.test.ts'],
    globalSetup: ['test/formats/install.ts', 'test/natural.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 15_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    fileParallelism: false,
    passWithNoTests: false,
  },
});
