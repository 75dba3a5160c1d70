// What a process pays while a phase runs: CPU time and memory, read from /proc.
import { readFileSync } from 'node:fs';
import { cpuSeconds } from '../front/load.ts';

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

/** Watches from now until `stop`; `seconds` is how long that will roughly take. */
export function watchProcess(pid: number, seconds: number): { stop(): Cost } {
  const [cpu, began] = [cpuSeconds(pid), performance.now()];
  let memoryEarly = Number.NaN;
  const early = setTimeout(
    () => {
      memoryEarly = residentMiB(pid);
    },
    Math.min(60, seconds / 2) * 1_000,
  );
  return {
    stop() {
      clearTimeout(early);
      const wall = (performance.now() - began) / 1_000;
      return { cpu: cpuSeconds(pid) - cpu, wall, memoryEarly, memoryLate: residentMiB(pid) };
    },
  };
}
