// Starts of a stack: refused ones, aborted ones, and no remains of either.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { startStack } from '../../../infra/local/stack.ts';
import { StartProblem } from '../../../infra/local/start-problem.ts';
import { folderForTest } from './folder.ts';
import { isRunning } from './process.ts';

const free = { port: 0 };
/** A stack takes seconds of processor time to start, beside other tests. */
const STACK_MS_MAX = 60_000;

it(
  'keeps its ports when a part restarts',
  async () => {
    const stack = await startStack({ ...free, state: folderForTest(), parts: ['blob', 'sqs', 'functions'] });
    try {
      const healthy = async () => (await fetch(`http://127.0.0.1:${stack.ports.functions}/api/health`)).status;
      expect(await healthy()).toBe(200);
      const before = stack.pid('sqs');
      stack.kill('sqs');
      await expect
        .poll(() => stack.isReady('sqs') && stack.pid('sqs') !== before, { timeout: STACK_MS_MAX })
        .toBe(true);
      await expect.poll(healthy, { timeout: STACK_MS_MAX }).toBe(200);
    } finally {
      await stack.stop();
    }
  },
  STACK_MS_MAX,
);

it('refuses a part that does not exist, and lets the folder go', async () => {
  const state = folderForTest();
  await expect(startStack({ ...free, state, parts: ['blobs'] })).rejects.toThrow(StartProblem);
  expect(existsSync(path.join(state, 'stack.json'))).toBe(false);
});

it('stopped while starting, leaves nothing', async () => {
  const state = folderForTest();
  const stop = new AbortController();
  const starting = startStack({ ...free, state, parts: ['blob', 'sqs', 'functions'], signal: stop.signal });
  const lock = path.join(state, 'stack.json');
  const groups = (): number[] =>
    existsSync(lock) ? (JSON.parse(readFileSync(lock, 'utf8') || '{}').groups ?? []) : [];
  await expect.poll(() => groups().length, { interval: 5, timeout: 5_000 }).toBeGreaterThan(0);
  const begun = groups();
  stop.abort();
  await expect(starting).rejects.toThrow('stopped while starting');
  expect(begun.filter(isRunning)).toEqual([]);
  expect(existsSync(lock)).toBe(false);
});
