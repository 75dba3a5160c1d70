// One run of wrk against one gateway, and the CPU time of the gateway's process.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { MODEL, PATH } from './words.ts';

/** Clock ticks per second of /proc; the kernel's ABI fixes it at 100 for user space on every platform we run on. */
const TICKS = 100;

export interface Ask {
  readonly url: string;
  readonly upstream: string;
  readonly pid: number;
  readonly token: string;
  readonly bytes: number;
  readonly connections: number;
  readonly seconds: number;
  /** Pause of each connection between two requests, ms; 0 for none. */
  readonly pauseMs: number;
}

export interface Run {
  readonly requests: number;
  readonly perSecond: number;
  /** Latency, microseconds. */
  readonly p50: number;
  readonly p99: number;
  /** CPU time of the gateway per request, microseconds. */
  readonly cpu: number;
  /** Share of one core that the gateway used. Well under 1, the load or the upstream was the limit. */
  readonly busy: number;
}

/** User and system time of a process with all its threads, seconds. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in brackets may hold spaces; the fields after it are counted from 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

const UNITS: Record<string, number> = { us: 1, ms: 1e3, s: 1e6, m: 60e6 };

/** Throws when a request failed: a fast error is not a fast gateway. */
export async function load(ask: Ask, loadCore: string): Promise<Run> {
  const { url, upstream, pid, token, bytes, connections, seconds, pauseMs } = ask;
  const script = path.join(import.meta.dirname, 'request.lua');
  const wrk = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '--latency', '-s', script];
  const before = cpuSeconds(pid);
  const began = performance.now();
  const said = await output('taskset', [
    ...['-c', loadCore, 'wrk', ...wrk, `${url}${PATH}`, '--'],
    ...[String(bytes), token, upstream, MODEL, String(pauseMs)],
  ]);
  const wall = (performance.now() - began) / 1_000;
  const cpu = cpuSeconds(pid) - before;
  const bad = /Non-2xx.*|Socket errors: connect [1-9].*|Socket errors:.*(?:read|write|timeout) [1-9].*/.exec(said);
  const requests = Number(/(\d+) requests in/.exec(said)?.[1] ?? 0);
  if (bad || requests === 0) throw new Error(`${url}, ${bytes} bytes, ${connections} connections: ${bad?.[0] ?? said}`);
  const latency = (percent: number) => {
    const [, value, unit] = new RegExp(`\\s${percent}%\\s+([\\d.]+)(us|ms|s|m)`).exec(said) ?? [];
    return Number(value) * (UNITS[unit ?? ''] ?? Number.NaN);
  };
  return {
    requests,
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(said)?.[1]),
    p50: latency(50),
    p99: latency(99),
    cpu: (cpu / requests) * 1e6,
    busy: cpu / wall,
  };
}

function output(command: string, given: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, given, { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
    });
    child.on('error', reject);
    child.on('close', () => resolve(said));
  });
}
