// The whole stack of a test file that is made of several: it starts before the first test and ends after the last one.
// The next test begins when all parts run again, whatever became of the one before.
import { afterAll, afterEach, beforeAll } from 'vitest';
import { type Running, run } from '../stack/running.ts';
import { whole } from './streams/place.ts';

export let running: Running;
beforeAll(async () => {
  running = await run();
}, 60_000);
afterEach(() => whole(running.stack));
afterAll(() => running?.end());
