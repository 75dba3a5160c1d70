// CPU affinity of measured processes.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';

const LAST = os.cpus().length - 1;

/** Core reserved for the measured thread. */
export const WORKING_CORE = '1';
/**
 * Load client and doubles have others. Where there are enough, the first one stays empty: virtual cores often are the two
 * halves of a real one, in pairs.
 */
export const LOAD_CORES = LAST > 2 ? `2-${LAST}` : '0';
/** Cores on which a measured process starts. */
export const ALL_CORES = `0-${LAST}`;

/**
 * Pins the process's working thread to its core. The threads of the collector and the compilers stay where
 * they started, with capacity: on the same core they would delay the thread that waits for them, and no
 * production machine has one core only. Their CPU time counts.
 */
export function keepToWorkingCore(pid: number): void {
  execFileSync('taskset', ['-c', '-p', WORKING_CORE, String(pid)], { stdio: 'ignore' });
}

/** Returns the cores for load clients and doubles beside an agent whose workers have cores 1 to `workers`. */
export const loadCores = (workers: number): string =>
  workers === 1 ? LOAD_CORES : LAST > workers ? `${workers + 1}-${LAST}` : ALL_CORES;

/** Returns the processes that a process has started. */
export const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

/** Gives the main thread of each stream worker of an agent a core of its own, from core 1 on; the agent's own has core 0. */
export function spreadWorkers(pid: number): void {
  for (const [at, process] of [pid, ...childrenOf(pid)].entries()) {
    execFileSync('taskset', ['-c', '-p', String(at % (LAST + 1)), String(process)], { stdio: 'ignore' });
  }
}
