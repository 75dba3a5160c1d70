import path from 'node:path';
import { defineConfig } from 'vitest/config';

// Templates of the clouds, checked without a cloud. A run of its own, because it installs a parser and starts
// wrangler and terraform.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'cloud',
    environment: 'node',
    pool: 'forks',
    include: ['test/cloud/**/*.test.ts'],
    globalSetup: ['test/cloud/install.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 60_000,
    // Terraform starts the provider of AWS for each run of its tests.
    hookTimeout: 120_000,
    maxWorkers: 2,
    passWithNoTests: false,
  },
});
