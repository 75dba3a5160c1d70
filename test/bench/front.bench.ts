// The edge beside its peers: requests a second and CPU per request, one core each, in front of one upstream.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeIdentity } from './front/identity.ts';
import { load, type Run } from './front/load.ts';
import { stopAll } from './front/processes.ts';
import { has, LARGE, MEDIUM, SMALL, type System, startSystems } from './front/systems.ts';
import { startUpstream } from './front/upstream-process.ts';
import type { Bench } from './run.ts';

/** Load and upstream share one core, so that a gateway has the other one for itself. */
const LOAD_CORE = '0';
const GATEWAY_CORE = '1';

const names: Record<number, string> = { [SMALL]: '1 kB', [MEDIUM]: '320 kB', [LARGE]: '10 MB' };

/** At 10 MB, 32 connections hold 320 MB in flight and come round so rarely that a run would catch half of a round. */
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

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const round = (value: number, digits = 2) => Number(value.toPrecision(Math.max(digits, 1)));

/** Options: `--repeats=2 --seconds=6 --only=auricle;hono proxy`. */
export async function measure(options: string[]): Promise<Bench> {
  const option = (name: string) => options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1];
  const plan = {
    repeats: Number(option('repeats') ?? 2),
    seconds: Number(option('seconds') ?? 6),
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

  const cells = systems
    .filter(({ name }) => only.length === 0 || only.includes(name))
    .flatMap((system) =>
      system.sizes.flatMap((bytes) =>
        connectionsFor(bytes).map((connections): Cell => ({ system, bytes, connections, runs: [] })),
      ),
    );
  let tenants = 0;
  const run = async ({ system, bytes, connections }: Cell, time: number) => {
    tenants += 1;
    const { url, pid, audit = 'buffered' } = system;
    const token = await identity.tenantToken(`bench-${tenants}`, audit);
    const address = `http://127.0.0.1:${upstream.port}`;
    return load({ url, upstream: address, pid, token, bytes, connections, seconds: time }, LOAD_CORE);
  };
  // Warm first: compilers and pools of connections are not what is compared.
  for (const cell of cells) if (cell.connections > 1) await run(cell, 1);
  // Round after round, so that a busy minute of the machine falls on everybody.
  for (let round = 0; round < repeats; round += 1) {
    for (const cell of cells) cell.runs.push(await run(cell, seconds));
  }
  return cells;
}

const WHAT = 'Each gateway has one core for itself (taskset); load (wrk) and the one upstream have the other.';

function report(cells: readonly Cell[], { repeats, seconds }: Plan): Bench {
  const table = cells.map(({ system, bytes, connections, runs }) => ({
    system: system.name,
    body: names[bytes] ?? bytes,
    connections,
    'requests/s': round(median(runs.map(({ perSecond }) => perSecond)), 3),
    'p50 µs': round(median(runs.map(({ p50 }) => p50)), 3),
    'CPU µs': round(median(runs.map(({ cpu }) => cpu)), 3),
    'of its core': round(median(runs.map(({ busy }) => busy))),
    does: system.does,
  }));
  const cpu = (name: string, bytes: number) =>
    median(
      cells
        .filter(({ system, bytes: own, connections }) => system.name === name && own === bytes && connections > 1)
        .flatMap(({ runs }) => runs.map((one) => one.cpu)),
    );
  const perSecond = (name: string, bytes: number) =>
    median(
      cells
        .filter(({ system, bytes: own, connections }) => system.name === name && own === bytes && connections > 1)
        .flatMap(({ runs }) => runs.map((one) => one.perSecond)),
    );
  const figures = {
    ratio_vs_hono: cpu('hono proxy', SMALL) / cpu('auricle', SMALL),
    ratio_vs_hono_320k: cpu('hono proxy', MEDIUM) / cpu('auricle', MEDIUM),
    stream_ratio_vs_pump: cpu('pump', LARGE) / cpu('auricle', LARGE),
    ratio_vs_portkey_node: cpu('Portkey on Node', SMALL) / cpu('auricle', SMALL),
    ratio_vs_portkey_node_320k: cpu('Portkey on Node', MEDIUM) / cpu('auricle', MEDIUM),
    ratio_vs_portkey_workerd: cpu('Portkey on workerd', SMALL) / cpu('auricle', SMALL),
    ratio_vs_floor: cpu('floor', SMALL) / cpu('auricle', SMALL),
    floor_vs_hono: cpu('hono proxy', SMALL) / cpu('floor', SMALL),
    strict_cost: cpu('auricle, strict record', SMALL) / cpu('auricle', SMALL),
    requests_per_second: perSecond('auricle', SMALL),
    requests_per_second_320k: perSecond('auricle', MEDIUM),
    cpu_us: cpu('auricle', SMALL),
    cpu_us_320k: cpu('auricle', MEDIUM),
    cpu_us_10m: cpu('auricle', LARGE),
  };
  return {
    table,
    figures: Object.fromEntries(
      Object.entries(figures)
        .filter(([, value]) => !Number.isNaN(value))
        .map(([name, value]) => [name, round(value, 3)]),
    ),
    how: `${WHAT} Raw workerd, no development server. CPU is user and system time of the gateway's process from /proc, per request. Ratios are of requests for the same gateway CPU, at 32 connections (8 for 10 MB): the peer's CPU per request over ours, above 1 where ours does more. ${repeats} rounds of ${seconds} s for each cell, all systems in turn; medians. Every system gets the same multipart request; the upstream gives a fixed answer, to the edge a sealed one. Load average at the end: ${os
      .loadavg()
      .map((one) => one.toFixed(1))
      .join(', ')}.`,
  };
}
