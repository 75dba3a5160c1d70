// One runtime serves many files of tests. Each file starts on a new day with empty storage, and no agent outlives its test.
import { reset } from 'cloudflare:test';
import { afterEach, beforeAll } from 'vitest';
import { clearNetwork, passTime } from '../fake/network.ts';

const DAY_MS = 86_400_000;

// Before the file is read: caches of the isolate are too old for it, and its own times follow this clock.
passTime(DAY_MS);
beforeAll(() => reset());
afterEach(clearNetwork);
