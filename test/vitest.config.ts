import { existsSync, globSync } from 'node:fs';
import path from 'node:path';
import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { makeBindings } from './edge/bindings.ts';
import { slowestFirst } from './slowest-first.ts';

const root = path.resolve(import.meta.dirname, '..');

/** How long one test and one hook may take, in milliseconds. A suite that needs more says so where it does. */
const TEST_MS_MAX = 10_000;
const HOOK_MS_MAX = 20_000;
/** A whole stack is started in a hook, and answers slowly while others start. */
const STACK_HOOK_MS_MAX = 60_000;
const STACK_TEST_MS_MAX = 30_000;

/** Twice the two cores that CI has: tests wait about half of their time, for timers and for processes of their own. */
const WORKERS = 4;

const bounded = { testTimeout: TEST_MS_MAX, hookTimeout: HOOK_MS_MAX, teardownTimeout: HOOK_MS_MAX };

const atNode = globSync('test/**/*.test.ts', {
  cwd: root,
  exclude: [
    'test/edge/**',
    'test/conformance/stream/**',
    'test/stack/**',
    'test/fault/**/!(simulation).test.ts',
    'test/triton/**',
    'test/clients/**',
    'test/image/**',
    'test/go/**',
    'test/cloud/**',
    'test/browser/**',
    'test/formats/**',
    'test/bench/**',
    'test/chart/**',
  ],
});

/** Files that need a process of their own: module doubles, fake timers, environment, signals, measured memory. */
const isAlone = (file: string) => file.endsWith('.alone.test.ts');

const inNode = {
  ...bounded,
  root,
  environment: 'node',
  pool: 'forks' as const,
  setupFiles: ['test/hermetic.ts'],
  maxWorkers: WORKERS,
};

// Why: pure decisions and everything that runs in Node. A module is loaded once in each process, not once for each file.
const node: TestProjectConfiguration = {
  test: { ...inNode, name: 'node', include: atNode.filter((file) => !isAlone(file)), isolate: false },
};

// Why: a file that changes its process, or measures it, would disturb the others in it.
const nodeAlone: TestProjectConfiguration = {
  test: { ...inNode, name: 'node-alone', include: atNode.filter(isAlone) },
};

const inWorkerd = {
  ...bounded,
  root,
  // Vitest wants the same number for all projects that run beside each other.
  maxWorkers: WORKERS,
};

const workerd = cloudflareTest({
  wrangler: { configPath: path.join(root, 'edge/wrangler.jsonc') },
  miniflare: { cf: false, bindings: await makeBindings() },
});

const atEdge = globSync(['test/edge/**/*.test.ts', 'test/conformance/stream/**/*.test.ts'], { cwd: root });

// Why: the edge's code runs in workerd only (Durable Objects, its WebCrypto, its limits), so its tests do too. A runtime
// takes 2 s of processor time to start and to load the edge, most files a fraction of that: they share one per worker.
const edge: TestProjectConfiguration = {
  plugins: [workerd],
  test: { ...inWorkerd, name: 'edge', include: atEdge, isolate: false, setupFiles: ['test/edge/setup.ts'] },
};

// Why: what a client sees, from outside, with every part running.
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
    maxWorkers: WORKERS,
    // Not beside the others: a stack on a busy machine is slow, and its tests have deadlines.
    sequence: { groupOrder: 1 },
  },
};

const edgeExists = existsSync(path.join(root, 'edge/worker.ts')) && existsSync(path.join(root, 'edge/wrangler.jsonc'));

export default defineConfig({
  root,
  test: {
    projects: [node, nodeAlone, ...(edgeExists ? [edge] : []), stack],
    sequence: { sequencer: slowestFirst('contract/engine/embedded.test.ts') },
    passWithNoTests: false,
  },
});
