// `auricle deploy check` against a running stack.
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { commandLine } from '../../infra/cli/command-line.ts';
import type { Step } from '../../infra/cli/deploy/step.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

let running: Shared;
beforeAll(async () => {
  running = await join();
});

/** Runs the command on the stack; the logs that it remembers are the stack's own. */
async function check(...words: string[]): Promise<{ exit: number; steps: readonly Step[] }> {
  process.env.AURICLE_AUDIT = path.join(running.state, 'seen-by-check');
  const { url, token } = running.stack;
  const line = ['deploy', 'check', '--json', '--edge', url, '--token', token, ...words];
  const { exit, out, err } = await commandLine(line, {});
  return { exit, steps: JSON.parse(out || err).steps };
}

it('T7 C11 C12 proves token, pools, transcription, upload and receipt', async () => {
  const { exit, steps } = await check('--model', 'reference-en');
  const outcomes = Object.fromEntries(steps.map(({ step, outcome }) => [step, outcome]));
  expect(outcomes).toMatchObject({
    'edge over TLS': 'skip',
    'token accepted': 'ok',
    'pools joined': 'ok',
    transcription: 'ok',
    'upload to outcome': 'ok',
    'audit receipt': 'ok',
  });
  expect(steps.filter(({ step, outcome }) => /^pool .* serves$/.test(step) && outcome === 'ok')).toHaveLength(1);
  expect(exit).toBe(0);
});

it('T7 stops at a token that the edge refuses', async () => {
  const { exit, steps } = await check('--token', 'wrong');
  expect(steps.map(({ step, outcome }) => [step, outcome])).toEqual([
    ['edge over TLS', 'skip'],
    ['token accepted', 'fail'],
  ]);
  expect(exit).toBe(1);
});
