import path from 'node:path';
import { defineConfig } from 'vitest/config';

// The chart as helm renders it. A run of its own, because it builds helm, kubeconform and kube-score from Go modules.
export default defineConfig({
  root: path.resolve(import.meta.dirname, '../..'),
  test: {
    name: 'chart',
    environment: 'node',
    pool: 'forks',
    include: ['test/chart/**/*.test.ts'],
    globalSetup: ['test/chart/install.ts', 'test/chart/metrics/install.ts'],
    setupFiles: ['test/hermetic.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
  },
});
