// Parts of the environment that commands use and tests replace.
import { setTimeout as sleep } from 'node:timers/promises';
import { backOffMs } from '../../shared/back-off.ts';

const RETRY = { firstMs: 250, maxMs: 15_000 };

/** Sleeps before the given attempt of a request. */
export const pauseBefore = (attempt: number): Promise<void> => sleep(backOffMs(attempt, RETRY, Math.random()));

/** Prints a line of progress to stderr: stdout has the answer. */
export const printLine = (line: string): void => void process.stderr.write(`${line}\n`);
