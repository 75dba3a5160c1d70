// Environments of the edge: each builds as it is deployed, with the objects of the default one.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { expect, it } from 'vitest';
import { ROOT } from '../../infra/local/root.ts';
import { stripComments } from '../../infra/local/worker-config.ts';
import { run } from '../../infra/pool/triton/run.ts';

const config = JSON.parse(stripComments(readFileSync(path.join(ROOT, 'edge/wrangler.jsonc'), 'utf8')));

it.each(['staging', 'production'])('C1 the edge builds for %s with all objects', async (environment) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-edge-'));
  try {
    const wrangler = path.join(ROOT, 'node_modules/wrangler/bin/wrangler.js');
    const options = ['--config', path.join(ROOT, 'edge/wrangler.jsonc'), '--env', environment, '--outdir', folder];
    const quiet = { ...process.env, WRANGLER_SEND_METRICS: 'false', WRANGLER_HIDE_BANNER: 'true', CI: 'true' };
    const built = await run(process.execPath, [wrangler, 'deploy', '--dry-run', ...options], quiet);
    if (!built.ok) throw new Error(built.lastLine);
    for (const { name, class_name } of config.durable_objects.bindings)
      expect(built.output).toMatch(new RegExp(`env\\.${name} \\(${class_name}\\)`));
    expect(built.output).toContain('env.MODE ("production")');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('C1 environments have names of their own', () => {
  const names = Object.values<{ name: string }>(config.env).map(({ name }) => name);
  expect(new Set([config.name, ...names]).size).toBe(3);
});
