// `npm run test:soak`: the seeded suites with 10,000 seeds and the fault suites with every kill; `SEEDS` overrides.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';

const root = path.resolve(import.meta.dirname, '..');
const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
const env = { ...process.env, SEEDS: process.env.SEEDS ?? '10000' };

const runs = [
  // Whole stacks draw no seeds.
  ['--config', 'test/vitest.config.ts', '--project', '!stack'],
  ['--config', 'test/fault/vitest.config.ts'],
];
const codes = runs.map((given) => {
  const options = { cwd: root, env, stdio: 'inherit' } as const;
  return spawnSync(process.execPath, [vitest, 'run', ...given, ...process.argv.slice(2)], options).status;
});
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
