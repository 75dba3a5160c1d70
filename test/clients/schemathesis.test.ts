import { execFile } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Running, run } from '../stack/running.ts';
import { bytecode, folder, interpreterOf } from './install.ts';

// A stack of its own: a generated request may drain a pool.
let running: Running;
beforeAll(async () => {
  running = await run();
});
afterAll(() => running?.end());

const here = (name: string) => path.join(import.meta.dirname, name);

/** Claims with every permission of a tenant, so that requests get as far as they can. */
const claims = {
  tenant: 'schemathesis',
  scope: 'transcribe stream synthesize infer models uploads projects audit compliance operate',
  languages: ['*'],
  priority: 'realtime',
  uploads: 'plain',
  keepDays: 30,
  allowance: {
    requestsPerMinute: 100_000,
    requestsAtOnce: 1_000,
    audioSecondsPerDay: 10_000_000,
    uploadsAtOnce: 100_000,
  },
};

/** Generated requests of an operation beside those that cover its schema: the step takes 90 s on two cores at most. */
const EXAMPLES = 5;

/** Runs every check on every operation and returns the exit code with the report from its failures on. */
function generate(url: string, token: string): Promise<{ code: number; report: string }> {
  const given = [
    ...['-m', 'schemathesis.cli', '--config-file', here('schemathesis.toml')],
    ...['run', `${url}/v1/openapi.json`, '--checks', 'all', '--max-examples', String(EXAMPLES), '--seed', '1'],
    ...['--header', `Authorization: Bearer ${token}`, '--no-color'],
  ];
  const env = { ...process.env, ...bytecode, AURICLE_HOOKS: here('schemathesis_hooks.py') };
  return new Promise((resolve) => {
    // Schemathesis stores its findings in its working directory.
    execFile(interpreterOf('schemathesis'), given, { cwd: folder, maxBuffer: 2 ** 24, env }, (error, output) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, report: output }),
    );
  });
}

describe('C10 T2 the interface matches its description', () => {
  it('C10 T2 schemathesis finds nothing with every check on every operation', async () => {
    const { code, report } = await generate(running.stack.url, await running.mint(claims, 3_600));
    const failures = report.indexOf('= FAILURES =');
    expect(failures < 0 ? '' : report.slice(failures)).toBe('');
    const [, selected, all] = /Operations: +(\d+) selected \/ (\d+) total/.exec(report) ?? [];
    expect([code, selected]).toEqual([0, all]);
    expect(report).toMatch(/\d+ generated, \d+ passed/);
  }, 300_000);
});
