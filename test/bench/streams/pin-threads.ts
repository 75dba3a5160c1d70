// Which cores a process that is measured has.
import { execFileSync } from 'node:child_process';
import os from 'node:os';

const LAST = os.cpus().length - 1;

/** What is measured works on one core, which nothing else gets. */
export const WORKING_CORE = '1';
/**
 * Load client and doubles have others. Where there are enough, the first one stays empty: virtual cores often are the two
 * halves of a real one, in pairs.
 */
export const LOAD_CORES = LAST > 2 ? `2-${LAST}` : '0';
/** For what is measured to start on. */
export const ALL_CORES = `0-${LAST}`;

/**
 * From here on the thread of the process that does the work keeps to its core. Those beside it, of the collector and of
 * the compilers, stay where they were started: where there is room. On one core they would hold up the very thread that
 * waits for them, and no machine that an agent or an edge runs on has only one. What they take counts all the same.
 */
export function keepToWorkingCore(pid: number): void {
  execFileSync('taskset', ['-c', '-p', WORKING_CORE, String(pid)], { stdio: 'ignore' });
}
