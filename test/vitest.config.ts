import { existsSync } from 'node:fs';
import path from 'node:path';
import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { makeBindings } from './edge/bindings.ts';

const root = path.resolve(import.meta.dirname, '..');

/** How long one test and one hook may take, in milliseconds. A suite that needs more says so where it does. */
const TEST_MS_MAX = 10_000;
const HOOK_MS_MAX = 20_000;
/** A whole stack is started in a hook, and answers slowly while others start. */
const STACK_HOOK_MS_MAX = 60_000;
const STACK_TEST_MS_MAX = 30_000;

const bounded = { testTimeout: TEST_MS_MAX, hookTimeout: HOOK_MS_MAX, teardownTimeout: HOOK_MS_MAX };

// Why: pure decisions and everything that runs in Node, in processes of their own, because several suites load native
// code or change process-wide state.
const node: TestProjectConfiguration = {
  test: {
    ...bounded,
    name: 'node',
    root,
    environment: 'node',
    pool: 'forks',
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/edge/**',
      'test/conformance/stream/**',
      'test/stack/**',
      'test/fault/**/!(simulation).test.ts',
      'test/triton/**',
      'test/clients/**',
      'test/go/**',
      'test/browser/**',
      'test/bench/**',
      '**/node_modules/**',
    ],
    setupFiles: ['test/hermetic.ts'],
    // Left to itself, vitest keeps one of two cores for nobody.
    maxWorkers: 2,
  },
};

// Why: the edge's code runs in workerd only (Durable Objects, its WebCrypto, its limits), so its tests do too.
const edge: TestProjectConfiguration = {
  plugins: [
    cloudflareTest({
      wrangler: { configPath: path.join(root, 'edge/wrangler.jsonc') },
      miniflare: { cf: false, bindings: await makeBindings() },
    }),
  ],
  test: { ...bounded, name: 'edge', root, include: ['test/edge/**/*.test.ts', 'test/conformance/stream/**/*.test.ts'] },
};

// Why: what a client sees, from outside, with every part running. Three stacks at a time: each mostly waits.
const stack: TestProjectConfiguration = {
  test: {
    ...bounded,
    testTimeout: STACK_TEST_MS_MAX,
    hookTimeout: STACK_HOOK_MS_MAX,
    name: 'stack',
    root,
    environment: 'node',
    pool: 'forks',
    include: ['test/stack/**/*.test.ts'],
    setupFiles: ['test/hermetic.ts'],
    globalSetup: ['test/stack/shared.ts'],
    maxWorkers: 3,
    // Not beside the others: a stack on a busy machine is slow, and its tests have deadlines.
    sequence: { groupOrder: 1 },
  },
};

const edgeExists = existsSync(path.join(root, 'edge/worker.ts')) && existsSync(path.join(root, 'edge/wrangler.jsonc'));

export default defineConfig({
  root,
  test: {
    projects: [node, ...(edgeExists ? [edge] : []), stack],
    passWithNoTests: false,
  },
});
