// One stack for a test file of several parts: it starts before the first test and ends after the last. Each
// test begins when all parts run.
import { afterAll, afterEach, beforeAll } from 'vitest';
import { type Running, run } from '../stack/running.ts';
import { whole } from './streams/place.ts';

export let running: Running;
beforeAll(async () => {
  running = await run();
}, 60_000);
afterEach(() => whole(running.stack));
afterAll(() => running?.end());
