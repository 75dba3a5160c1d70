// Uploads: how many files, and how many hours of sound, the path carries with an engine that answers after a fixed time;
// what a long file takes of memory; what the services around the pool cost.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { wav } from '../wav.ts';
import { costOf, machineCost, machines, prices } from './batch/costs.ts';
import { writeFinished } from './batch/finished.ts';
import { AGENT, type Path, startPath } from './batch/path.ts';
import { finish, send } from './batch/send.ts';
import { median } from './median.ts';
import type { Bench } from './run.ts';

const clip = (name: string) => readFileSync(path.join(import.meta.dirname, '../clips', name));
/** Answer time of the engine double for an utterance, ms. */
const ENGINE_MS = 20;
const RATE = 16_000;
/** Files that are compared with the first ones. */
const COMPARED = 20;
/** Length of the recording in the cost figures, s. */
const CLIP_SECONDS = 2.7;

/** Options: `--files=300 --hours=4 --counted=20 --burst=200 --finished=10000`. */
export async function measure(options: string[]): Promise<Bench> {
  const option = (name: string, otherwise: number) =>
    Number(options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1] ?? otherwise);
  const [files, hours, counted] = [option('files', 300), option('hours', 4), option('counted', 20)];
  const memory = await within(false, measureMemory);
  const many = await within(false, (front) => sendMany(front, clip('balance.wav'), files, 16));
  const long = await within(false, (front) => sendMany(front, talk(3_600), hours, 2));
  const [burst, finished] = [option('burst', 200), option('finished', 10_000)];
  const atOnce = await within(false, (front) => sendMany(front, clip('balance.wav'), burst, burst));
  const flat = await within(true, (front) => compareFinished(front, finished));
  const counts = await within(true, (front) => countAll(front, counted));
  const { rows, sum } = costOf(counts);
  const round = (value: number) => Number(value.toPrecision(3));
  const figures = {
    files_per_s: round(files / many.seconds),
    burst_files_per_s: round(burst / atOnce.seconds),
    requests_after_10000_ratio: round(flat.requests),
    cpu_after_10000_ratio: round(flat.cpu),
    ms_after_10000_ratio: round(flat.ms),
    audio_hours_per_hour: round((hours * 3_600) / long.seconds),
    agent_cpu_ms_per_file: round(many.agent),
    functions_cpu_ms_per_file: round(many.functions),
    agent_cpu_s_for_an_hour: round(long.agent / 1_000),
    agent_mb_for_an_hour: round(memory.agent),
    functions_mb_for_an_hour: round(memory.functions),
    dollars_per_1000: round(sum),
  };
  return {
    figures,
    table: [
      ...Object.entries(figures).map(([what, value]) => ({
        what,
        value,
        ...targetOf(what, value),
      })),
      ...rows.map(([of, cost]) => ({
        what: `of it ${of}: ${prices.find((price) => price.of === of)?.what ?? ''}`,
        value: round(cost),
        target: `${counts.get(of) ?? 0} for 1000 files`,
        met: '',
      })),
      // Pool costs are not measured but derived: list price of a machine at an assumed multiple of real time.
      ...machines.map(({ what, dollars }) => ({
        what: `beside it the pool, ${what}, 100 times faster than speech`,
        value: round(machineCost(dollars, CLIP_SECONDS, 100)),
        target: 'dollars for 1000 files',
        met: '',
      })),
    ],
    how:
      `Whole local stack with one agent of four slots, two jobs at once, and an engine double of ${ENGINE_MS} ms an ` +
      `utterance, all on one machine with the load. Files are sealed. Files per second: ${files} recordings of 2.7 s, ` +
      `16 clients, from the first request to the last transcript. Burst: ${burst} of them at once. Ratios: files one ` +
      `by one after ${finished} finished ones, whose rows and transcripts were written through the stores, over the first of the ` +
      'same stack: requests of the stores, CPU of functions and storage together, milliseconds at the median. ' +
      `Hours: ${hours} recordings of an hour, two at once. ` +
      'CPU: user and system time of the process, which also holds on a machine that others use. Memory: resident size above idle while one hour goes through, largest of looks every 50 ms, after one of five ' +
      `minutes. Cost: requests counted before the stores while ${counted} files go through one by one, scaled to 1,000; ` +
      'lists of blobs, by which the local host finds events, are left out; what an idle stack asks is not.',
  };
}

/** Memory in MB, and how much more a file may cost after 10,000 finished ones, with the noise of a shared machine. */
function targetOf(what: string, value: number): { target: string; met: string } {
  const most = what.includes('_mb_') ? 150 : what.endsWith('_after_10000_ratio') ? 1.5 : undefined;
  return most === undefined ? { target: '', met: '' } : { target: `<= ${most}`, met: value <= most ? 'yes' : 'no' };
}

async function within<T>(counted: boolean, run: (front: Path) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-batch-'));
  const front = await startPath(folder, counted, ENGINE_MS);
  try {
    return await run(front);
  } finally {
    await front.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Speech with pauses, so many seconds of it. */
function talk(seconds: number): Uint8Array {
  const parts = ['balance.wav', 'meeting.wav', 'number.wav'].map((name) => clip(name).subarray(44));
  const pause = Buffer.alloc(2 * RATE);
  const once = Buffer.concat(parts.flatMap((part) => [part.subarray(0, part.length & ~1), pause]));
  const samples = new Int16Array(seconds * RATE);
  const source = new Int16Array(once.buffer.slice(once.byteOffset, once.byteOffset + once.length));
  for (let at = 0; at < samples.length; at += source.length) {
    samples.set(source.subarray(0, Math.min(source.length, samples.length - at)), at);
  }
  return wav(samples, RATE);
}

/** Processor time of a process so far, in milliseconds; Linux counts it in hundredths of a second. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return 10 * ((user ?? 0) + (system ?? 0));
}

interface Sent {
  readonly seconds: number;
  /** Processor time of a file, in milliseconds. */
  readonly agent: number;
  readonly functions: number;
}

async function sendMany(front: Path, file: Uint8Array, count: number, clients: number): Promise<Sent> {
  await finish(front, await send(front, clip('balance.wav')));
  const pids = [front.pid(AGENT), front.pid('functions')] as const;
  const before = pids.map(cpuMs);
  const from = performance.now();
  let next = 0;
  const ids: string[] = [];
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (next++ < count) ids.push(await send(front, file));
    }),
  );
  for (const id of ids) await finish(front, id);
  const [agent = 0, functions = 0] = pids.map((pid, i) => (cpuMs(pid) - (before[i] ?? 0)) / count);
  return { seconds: (performance.now() - from) / 1_000, agent, functions };
}

const residentMb = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;

async function measureMemory(front: Path): Promise<{ agent: number; functions: number }> {
  await finish(front, await send(front, talk(300)));
  const pids = { agent: front.pid(AGENT), functions: front.pid('functions') };
  const idle = { agent: residentMb(pids.agent), functions: residentMb(pids.functions) };
  const most = { ...idle };
  const look = setInterval(() => {
    most.agent = Math.max(most.agent, residentMb(pids.agent));
    most.functions = Math.max(most.functions, residentMb(pids.functions));
  }, 50);
  try {
    await finish(front, await send(front, talk(3_600)));
  } finally {
    clearInterval(look);
  }
  return { agent: most.agent - idle.agent, functions: most.functions - idle.functions };
}

interface Each {
  /** Requests of the stores, CPU of functions and storage in milliseconds, and milliseconds of a file. */
  readonly requests: number;
  readonly cpu: number;
  readonly ms: number;
}

/** Files one by one, after so many that are over, compared with the first ones. */
async function compareFinished(front: Path, finished: number): Promise<Each> {
  await finish(front, await send(front, clip('balance.wav')));
  const first = await measureEach(front);
  await front.without('functions', () => writeFinished(front.storage, finished));
  await finish(front, await send(front, clip('balance.wav')));
  const later = await measureEach(front);
  const ratio = (of: keyof Each) => later[of] / first[of];
  return { requests: ratio('requests'), cpu: ratio('cpu'), ms: ratio('ms') };
}

async function measureEach(front: Path): Promise<Each> {
  const file = clip('balance.wav');
  const pids = [front.pid('functions'), front.pid('blob')];
  const used = () => pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  const before = used();
  for (const { counts } of front.counters) counts.clear();
  const times: number[] = [];
  for (let at = 0; at < COMPARED; at += 1) {
    const from = performance.now();
    await finish(front, await send(front, file), 20);
    times.push(performance.now() - from);
  }
  const requests = front.counters.flatMap(({ counts }) => [...counts.values()]).reduce((sum, count) => sum + count, 0);
  return { requests: requests / COMPARED, cpu: (used() - before) / COMPARED, ms: median(times) };
}

/** Requests of 1,000 files. */
async function countAll(front: Path, files: number): Promise<Map<string, number>> {
  const file = clip('balance.wav');
  await finish(front, await send(front, file));
  for (const { counts } of front.counters) counts.clear();
  for (let sent = 0; sent < files; sent++) await finish(front, await send(front, file), 1_000);
  const all = new Map(front.counters.flatMap(({ counts }) => [...counts]));
  const scaled = new Map([...all].map(([name, count]) => [name, Math.round((count * 1_000) / files)]));
  // Edge calls: grant, two status reads, transcript, booking; each passes the tenant's gate. Function
  // executions: grant, two status reads, two blob events, opening of a job.
  const [edge, executions] = [5_000, 6_000];
  scaled.set('edge', edge).set('edge CPU', 2 * edge);
  scaled.set('gate', 2 * edge).set('gate memory', 2 * edge * 0.128 * 0.01);
  scaled.set('functions', executions).set('memory', executions * 2 * 0.1);
  return scaled.set('event', 2 * 2_000);
}
