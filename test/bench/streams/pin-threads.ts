// Which cores a process that is measured has.
import { execFileSync } from 'node:child_process';

/** Load client and doubles share one core, and what is measured works on the other. */
export const LOAD_CORE = '0';
export const WORKING_CORE = '1';
/** For what is measured to start on. */
export const BOTH_CORES = `${LOAD_CORE},${WORKING_CORE}`;

/**
 * From here on the thread of the process that does the work keeps to its core. Those beside it, of the collector and of
 * the compilers, stay where they were started: where there is room. On one core they would hold up the very thread that
 * waits for them, and no machine that an agent or an edge runs on has only one. What they take counts all the same.
 */
export function keepToWorkingCore(pid: number): void {
  execFileSync('taskset', ['-c', '-p', WORKING_CORE, String(pid)], { stdio: 'ignore' });
}
