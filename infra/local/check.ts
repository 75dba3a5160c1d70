// `npm run check`: format, lint, types, shape, and a dry run of the edge's deployment. Every step runs, so
// that one run shows all problems.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { ROOT } from './root.ts';

type Step = { name: string; command: string[]; env?: Record<string, string> };
type Outcome = { step: Step; passed: boolean; output: string; tookMs: number };

const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-check-'));

const steps: Step[] = [
  {
    name: 'format and lint',
    command: ['node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '--colors=off', '.'],
  },
  ...['.', 'shared', 'edge', 'edge/client', 'functions'].map((project) => ({
    name: project === '.' ? 'types' : `types of ${project}`,
    command: ['node_modules/typescript/bin/tsc', '-p', project],
  })),
  {
    name: 'shape',
    command: [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--config',
      'test/vitest.config.ts',
      '--project',
      'node',
      'test/shape',
    ],
  },
];

for (const worker of ['edge', 'edge/witness']) {
  if (!existsSync(path.join(ROOT, worker, 'wrangler.jsonc'))) continue;
  steps.push({
    name: `${worker} deploys (dry run)`,
    command: [
      'node_modules/wrangler/bin/wrangler.js',
      'deploy',
      '--dry-run',
      '--config',
      `${worker}/wrangler.jsonc`,
      '--outdir',
      path.join(scratch, worker),
    ],
    env: { WRANGLER_SEND_METRICS: 'false', WRANGLER_HIDE_BANNER: 'true', CI: 'true' },
  });
}

function run(step: Step): Promise<Outcome> {
  const startedAt = performance.now();
  return new Promise((settle) => {
    let output = '';
    const child = spawn(process.execPath, step.command, {
      cwd: ROOT,
      env: { ...process.env, NO_COLOR: '1', ...step.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const finish = (passed: boolean) => settle({ step, passed, output, tookMs: performance.now() - startedAt });
    child.on('error', (error) => {
      output += error.message;
      finish(false);
    });
    child.on('close', (code) => finish(code === 0));
  });
}

const outcomes = await Promise.all(steps.map(run));
rmSync(scratch, { recursive: true, force: true });
for (const { step, passed, output } of outcomes) {
  if (!passed) console.log(`\n── ${step.name} ──\n${output.trim()}\n`);
}
for (const { step, passed, tookMs } of outcomes) {
  console.log(`${passed ? 'pass' : 'FAIL'}  ${step.name} (${(tookMs / 1_000).toFixed(1)} s)`);
}
process.exitCode = outcomes.every((outcome) => outcome.passed) ? 0 : 1;
