// The edge beside its peers: requests a second and CPU per request, one core each, in front of one upstream.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeIdentity } from './front/identity.ts';
import { load, type Run } from './front/load.ts';
import { stopAll } from './front/processes.ts';
import { has, LARGE, MEDIUM, SMALL, type System, startSystems } from './front/systems.ts';
import { startUpstream } from './front/upstream-process.ts';
import { middle, ratioFigures } from './median.ts';
import type { Bench } from './run.ts';

/** Load and upstream share one core, so that a gateway has the other one for itself. */
const LOAD_CORE = '0';
const GATEWAY_CORE = '1';

const names: Record<number, string> = { [SMALL]: '1 kB', [MEDIUM]: '320 kB', [LARGE]: '10 MB' };

/**
 * Connections by size: at 10 MB, 32 connections hold 320 MB in flight, and a run would catch half a round.
 */
const connectionsFor = (bytes: number): number[] => (bytes === LARGE ? [1, 8] : [1, 32]);

interface Cell {
  readonly system: System;
  readonly bytes: number;
  readonly connections: number;
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
  const edge = systems.find(({ audit }) => audit);
  if (edge) await upstream.join(edge.url, identity);

  const wanted = systems.filter(({ name }) => only.length === 0 || only.includes(name));
  // Compared systems run right after each other, since the machine's speed drifts within minutes.
  const cells = [SMALL, MEDIUM, LARGE].flatMap((bytes) =>
    connectionsFor(bytes).flatMap((connections) =>
      wanted
        .filter(({ sizes }) => sizes.includes(bytes))
        .map((system): Cell => ({ system, bytes, connections, runs: [] })),
    ),
  );
  let tenants = 0;
  // A fresh tenant each time, so that no run pays for the record of another.
  const run = async ({ system, bytes, connections }: Cell, time: number) => {
    tenants += 1;
    const { url, pid, audit = 'buffered' } = system;
    const token = await identity.tenantToken(`bench-${tenants}`, audit);
    const address = `http://127.0.0.1:${upstream.port}`;
    return load({ url, upstream: address, pid, token, bytes, connections, seconds: time }, LOAD_CORE);
  };
  // Warm first: compilers and pools of connections are not what is compared.
  for (const cell of cells) if (cell.connections > 1) await run(cell, 1);
  // Rounds are interleaved, so that a busy minute affects all systems.
  for (let round = 0; round < repeats; round += 1) {
    for (const cell of cells) cell.runs.push(await run(cell, seconds));
  }
  return cells;
}

const WHAT = 'Each gateway has one core for itself (taskset); load (wrk) and the one upstream have the other.';

function report(cells: readonly Cell[], { repeats, seconds }: Plan): Bench {
  /** The round in the middle by its CPU: all that a row says is of one round. */
  const shown = ({ runs }: Cell) => middle(runs, ({ cpu }) => cpu);
  const table = cells.map((cell) => {
    const { perSecond, p50, cpu, busy } = shown(cell);
    return {
      system: cell.system.name,
      body: names[cell.bytes] ?? cell.bytes,
      connections: cell.connections,
      'requests/s': round(perSecond, 3),
      'p50 µs': round(p50, 3),
      'CPU µs': round(cpu, 3),
      'of its core': round(busy),
      does: cell.system.does,
    };
  });
  const cellOf = (name: string, bytes: number) =>
    cells.find((cell) => cell.system.name === name && cell.bytes === bytes && cell.connections > 1);
  /** Ratios of CPU per request, one for each round. */
  const ratio = (name: string, above: string, below: string, bytes: number) => {
    const [over, under] = [cellOf(above, bytes)?.runs ?? [], cellOf(below, bytes)?.runs ?? []];
    return ratioFigures(
      name,
      over.flatMap(({ cpu }, at) => (under[at] ? [cpu / under[at].cpu] : [])),
    );
  };
  const own = (name: string, bytes: number, take: (run: Run) => number) => {
    const cell = cellOf('auricle', bytes);
    return cell && { [name]: take(shown(cell)) };
  };
  const figures: Record<string, number> = {
    ...ratio('ratio_vs_hono', 'hono proxy', 'auricle', SMALL),
    ...ratio('ratio_vs_hono_320k', 'hono proxy', 'auricle', MEDIUM),
    ...ratio('stream_ratio_vs_pump', 'pump', 'auricle', LARGE),
    ...ratio('ratio_vs_portkey_node', 'Portkey on Node', 'auricle', SMALL),
    ...ratio('ratio_vs_portkey_node_320k', 'Portkey on Node', 'auricle', MEDIUM),
    ...ratio('ratio_vs_portkey_workerd', 'Portkey on workerd', 'auricle', SMALL),
    ...ratio('ratio_vs_floor', 'floor', 'auricle', SMALL),
    ...ratio('floor_vs_hono', 'hono proxy', 'floor', SMALL),
    ...ratio('strict_cost', 'auricle, strict record', 'auricle', SMALL),
    ...own('requests_per_second', SMALL, ({ perSecond }) => perSecond),
    ...own('requests_per_second_320k', MEDIUM, ({ perSecond }) => perSecond),
    ...own('cpu_us', SMALL, ({ cpu }) => cpu),
    ...own('cpu_us_320k', MEDIUM, ({ cpu }) => cpu),
    ...own('cpu_us_10m', LARGE, ({ cpu }) => cpu),
  };
  return {
    table,
    figures: Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, round(value, 3)])),
    how: `${WHAT} Raw workerd, no development server. CPU is user and system time of the gateway's process from /proc, per request. Ratios are of requests for the same gateway CPU, at 32 connections (8 for 10 MB): the peer's CPU per request over ours, above 1 where ours does more. ${repeats} rounds of ${seconds} s for each cell, all systems in turn. A ratio is taken in each round: the figure is the median of them, _low and _high are the lowest and the highest. All that a row says is of one round, the middle one by CPU per request. Every system gets the same multipart request; the upstream gives a fixed answer, to the edge a sealed one. Load average at the end: ${os
      .loadavg()
      .map((one) => one.toFixed(1))
      .join(', ')}.`,
  };
}
