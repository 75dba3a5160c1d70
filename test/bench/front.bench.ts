// The edge beside its peers: CPU per request and latency, one core each, in front of one upstream.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeIdentity } from './front/identity.ts';
import { load, type Run } from './front/load.ts';
import { stopAll } from './front/processes.ts';
import { EDGE, has, LARGE, MEDIUM, SMALL, type System, startSystems } from './front/systems.ts';
import { startUpstream } from './front/upstream-process.ts';
import { middle, ratioFigures } from './median.ts';
import type { Bench } from './run.ts';

/** Load and upstream share one core, so that a gateway has the other one for itself. */
const LOAD_CORE = '0';
const GATEWAY_CORE = '1';

interface Load {
  readonly bytes: number;
  readonly body: string;
  readonly connections: number;
  /** Pause of each connection after an answer, ms; with it the load is about 200 requests a second. */
  readonly pauseMs: number;
}

/** At 10 MB, 32 connections hold 320 MB in flight and return so rarely that a run would catch half of a round. */
const LOADS: readonly Load[] = [
  { bytes: SMALL, body: '32 kB', connections: 32, pauseMs: 0 },
  { bytes: SMALL, body: '32 kB', connections: 20, pauseMs: 100 },
  { bytes: MEDIUM, body: '320 kB', connections: 32, pauseMs: 0 },
  { bytes: MEDIUM, body: '320 kB', connections: 20, pauseMs: 100 },
  { bytes: LARGE, body: '10 MB', connections: 8, pauseMs: 0 },
];

interface Cell {
  readonly system: System;
  readonly load: Load;
  readonly runs: Run[];
}

interface Plan {
  readonly repeats: number;
  readonly seconds: number;
  /** Names of systems to measure; empty for all. */
  readonly only: readonly string[];
}

const round = (value: number, digits = 2) => Number(value.toPrecision(Math.max(digits, 1)));

/** Options: `--repeats=3 --seconds=5 --only=auricle;hono proxy`. */
export async function measure(options: string[]): Promise<Bench> {
  const option = (name: string) => options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1];
  const plan = {
    repeats: Number(option('repeats') ?? 3),
    seconds: Number(option('seconds') ?? 5),
    only: option('only')?.split(';') ?? [],
  };
  for (const program of ['wrk', 'taskset']) {
    if (!has(program)) throw new Error(`${program} is needed (apt-get install wrk util-linux)`);
  }
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-front-'));
  try {
    return report(await measureIn(folder, plan), plan);
  } finally {
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureIn(folder: string, { repeats, seconds, only }: Plan): Promise<Cell[]> {
  const identity = await makeIdentity(folder);
  const upstream = await startUpstream(LOAD_CORE);
  const systems = await startSystems({ folder, upstreamPort: upstream.port, core: GATEWAY_CORE, identity });
  const edge = systems.find(({ name }) => name === EDGE);
  if (edge) await upstream.join(edge.url, identity);

  const wanted = systems.filter(({ name }) => only.length === 0 || only.includes(name));
  // Systems that are compared run right after each other: the load of the machine changes within a minute.
  const cells = LOADS.flatMap((one) => wanted.map((system): Cell => ({ system, load: one, runs: [] })));
  let tenants = 0;
  // A fresh tenant for each run, so that none pays for the record of another.
  const run = async ({ system: { url, pid }, load: given }: Cell, time: number) => {
    tenants += 1;
    const token = await identity.tenantToken(`bench-${tenants}`, 'buffered');
    const address = `http://127.0.0.1:${upstream.port}`;
    return load({ ...given, url, upstream: address, pid, token, seconds: time }, LOAD_CORE);
  };
  // Warm first: compilers and connection pools are not compared.
  for (const cell of cells) if (cell.load.pauseMs === 0) await run(cell, 4);
  for (let round = 0; round < repeats; round += 1) {
    for (const cell of cells) cell.runs.push(await run(cell, seconds));
  }
  return cells;
}

const WHAT = 'Each gateway has one core for itself (taskset); load (wrk) and the upstream share the other.';

function report(cells: readonly Cell[], { repeats, seconds }: Plan): Bench {
  /** The middle round by its CPU, so that all figures of a row are of one round. */
  const shown = ({ runs }: Cell) => middle(runs, ({ cpu }) => cpu);
  const table = cells.map((cell) => {
    const { perSecond, p50, p99, cpu, busy } = shown(cell);
    return {
      system: cell.system.name,
      body: cell.load.body,
      connections: cell.load.connections,
      'pause ms': cell.load.pauseMs,
      'requests/s': round(perSecond, 3),
      'p50 µs': round(p50, 3),
      'p99 µs': round(p99, 3),
      'CPU µs': round(cpu, 3),
      'of its core': round(busy),
      does: cell.system.does,
    };
  });
  const cellOf = (name: string, bytes: number, isPaced = false) =>
    cells.find(({ system, load: one }) => system.name === name && one.bytes === bytes && one.pauseMs > 0 === isPaced);
  /** CPU per request of one system over another's, in each round. */
  const ratio = (name: string, above: string, below: string, bytes: number) => {
    const [over, under] = [cellOf(above, bytes)?.runs ?? [], cellOf(below, bytes)?.runs ?? []];
    return ratioFigures(
      name,
      over.flatMap(({ cpu }, at) => (under[at] ? [cpu / under[at].cpu] : [])),
    );
  };
  const own = (name: string, bytes: number) => {
    const cell = cellOf(EDGE, bytes);
    return cell && { [name]: shown(cell).cpu };
  };
  /** Latency at about 200 requests a second beside the bare proxy's, ms. */
  const added = (name: string, bytes: number, take: (run: Run) => number) => {
    const [ours, proxy] = [cellOf(EDGE, bytes, true), cellOf('hono proxy', bytes, true)];
    return ours && proxy && { [name]: (take(shown(ours)) - take(shown(proxy))) / 1_000 };
  };
  const figures: Record<string, number> = {};
  for (const [size, bytes] of [
    ['32k', SMALL],
    ['320k', MEDIUM],
    ['10m', LARGE],
  ] as const) {
    Object.assign(figures, own(`cpu_us_${size}`, bytes), ratio(`cpu_vs_floor_${size}`, EDGE, 'floor', bytes));
    Object.assign(figures, ratio(`cpu_vs_hono_${size}`, EDGE, 'hono proxy', bytes));
    Object.assign(figures, ratio(`portkey_vs_cpu_${size}`, 'Portkey on Node', EDGE, bytes));
    Object.assign(
      figures,
      added(`added_p50_ms_${size}`, bytes, ({ p50 }) => p50),
    );
    Object.assign(
      figures,
      added(`added_p99_ms_${size}`, bytes, ({ p99 }) => p99),
    );
  }
  return {
    table,
    figures: Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, round(value, 3)])),
    how: `${WHAT} Raw workerd, no development server. CPU is user and system time of the gateway's process from /proc, per request. ${repeats} rounds of ${seconds} s for each cell, all systems in turn. A ratio is taken in each round: the figure is the median, _low and _high are the lowest and the highest. A row is the middle round by CPU per request. Added latency is at about 200 requests a second. Every system gets the same multipart request; the upstream gives a fixed answer, to the edge a sealed one. Load average at the end: ${os
      .loadavg()
      .map((one) => one.toFixed(1))
      .join(', ')}.`,
  };
}
