// Resources of a process during a phase: CPU time and memory, read from /proc.
import { readFileSync } from 'node:fs';
import { cpuSeconds } from '../front/load.ts';
import { childrenOf } from './pin-threads.ts';

const MiB = 1_024;

/** Resident memory, MiB. */
export function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / MiB;
}

export interface Cost {
  /** User and system time, seconds. */
  readonly cpu: number;
  readonly wall: number;
  /** MiB when a minute, or half of a shorter phase, was over, and at the end. */
  readonly memoryEarly: number;
  readonly memoryLate: number;
}

/**
 * Watches a process and those it has started from now until `stop`; `seconds` is how long that will roughly take.
 */
export function watchProcess(pid: number, seconds: number): { stop(): Cost } {
  const all = [pid, ...childrenOf(pid)];
  const sum = (read: (pid: number) => number) => all.reduce((total, one) => total + read(one), 0);
  const [cpu, began] = [sum(cpuSeconds), performance.now()];
  let memoryEarly = Number.NaN;
  const early = setTimeout(
    () => {
      memoryEarly = sum(residentMiB);
    },
    Math.min(60, seconds / 2) * 1_000,
  );
  return {
    stop() {
      clearTimeout(early);
      const wall = (performance.now() - began) / 1_000;
      return { cpu: sum(cpuSeconds) - cpu, wall, memoryEarly, memoryLate: sum(residentMiB) };
    },
  };
}
