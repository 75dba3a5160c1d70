// The edge with an agent double behind it, a bare Durable Object relay beside it, and no edge at all for comparison.
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../../../infra/local/root.ts';
import { type Identity, makeIdentity, POOL, ZONE } from '../front/identity.ts';
import { freePort, listens, startOn } from '../front/processes.ts';
import { config } from '../front/systems.ts';
import { MODEL } from '../front/words.ts';
import { planWorker, type WorkerPlan } from '../front/workerd.ts';
import type { DoubleOrder } from './agent-double.ts';
import type { Counts } from './ledger.ts';
import { runLoad } from './load-process.ts';
import { next } from './messages.ts';
import { ALL_CORES, keepToWorkingCore, LOAD_CORES } from './pin-threads.ts';
import type { LoadOrder, LoadReport } from './stream-load.ts';
import { FORMAT, FRAME_BYTES } from './traffic.ts';
import { type Cost, watchProcess } from './watch-process.ts';

/** Compilers, connections and Durable Objects are new in this time. */
const WARM_SECONDS = 5;
const JOIN_MS_MAX = 15_000;
/** Longest phase of the peer, s; more would show nothing new. */
export const PEER_SECONDS_MAX = 40;

export interface EdgePhase {
  readonly system: 'auricle' | 'bare relay' | 'no edge';
  readonly load: LoadReport;
  readonly counts: Counts;
  /** Frames sent that the upstream did not count, and those it found wrong. */
  readonly lost: number;
  /** CPU per frame of the system's process, µs, and its memory; absent without such a process. */
  readonly cpuPerFrame: number | undefined;
  readonly cost: Cost | undefined;
}

interface System {
  readonly name: EdgePhase['system'];
  readonly pid: number | undefined;
  order(): Promise<Omit<LoadOrder, 'streams' | 'seconds' | 'warmSeconds'>>;
}

export interface EdgePlan {
  readonly folder: string;
  readonly streams: number;
  readonly seconds: number;
  readonly repeats: number;
}

export async function measureEdge(plan: EdgePlan): Promise<EdgePhase[]> {
  const { double, bare, relay, edge } = await startSystems(plan.folder);
  const phases: EdgePhase[] = [];
  const run = async (system: System, seconds: number) => {
    phases.push(await runPhase(system, double, plan.streams, seconds));
  };
  // The peer before and after, so that a machine that gets slower or faster meanwhile is seen.
  const short = Math.min(PEER_SECONDS_MAX, plan.seconds);
  for (let round = 0; round < plan.repeats; round += 1) {
    await run(bare, Math.min(20, short));
    await run(relay, short);
    await run(edge, plan.seconds);
    await run(relay, short);
  }
  return phases;
}

/** A Worker in a runtime of its own. */
async function startWorker(
  folder: string,
  entry: string,
  name: string,
  plan: Pick<WorkerPlan, 'config' | 'bindings'>,
  flags: readonly string[] = [],
) {
  const [own, free] = [path.join(folder, name), await freePort()];
  const command = await planWorker(entry, { folder: own, port: free, ...plan });
  const child = startOn(ALL_CORES, [...command, ...flags], { cwd: folder });
  await listens(free, child);
  return { child, pid: child.pid, host: `127.0.0.1:${free}` };
}

const plain = { headers: [{}], end: 'end', positionBytes: 0 };

/** The double and before it the bare relay, which is the peer of both halves. */
export async function startPeer(folder: string) {
  const double = startOn(LOAD_CORES, [process.execPath, path.join(import.meta.dirname, 'agent-double.ts')], {
    ipc: true,
  });
  const { port } = await next<{ port: number }>(double, 'port');
  const { child, pid, host } = await startWorker(folder, relayEntry(folder), 'relay', {
    config: { ...config, durable_objects: { bindings: [{ name: 'RELAY', class_name: 'Relay' }] } },
    bindings: { UPSTREAM: `http://127.0.0.1:${port}/bare` },
  });
  keepToWorkingCore(pid);
  const relay: System = { name: 'bare relay', pid, order: async () => ({ ...plain, url: `ws://${host}/{stream}` }) };
  return { double, port, relay, process: child };
}

/** The edge on a free port. `inspector`: port of its runtime's profiler. */
export const startEdge = (folder: string, { edgeBindings }: Identity, inspector?: number) =>
  startWorker(
    folder,
    path.join(ROOT, 'edge/worker.ts'),
    'edge',
    { config, bindings: edgeBindings },
    inspector === undefined ? [] : [`--inspector-addr=127.0.0.1:${inspector}`],
  );

/** Two tenants, since an isolate admits fewer streams of one than it carries. */
const TENANTS = 2;
let tenants = 0;

/** Order of streams of new tenants through an edge, less their number and duration. */
export const edgeOrder = async (host: string, identity: Identity, model: string) => ({
  url: `ws://${host}/v1/stream`,
  begin: JSON.stringify({ type: 'start', v: 1, model, format: FORMAT }),
  positionBytes: 6,
  headers: await Promise.all(
    Array.from({ length: TENANTS }, async () => {
      const token = await identity.tenantToken(`bench-${tenants++}`, 'buffered');
      return { authorization: `Bearer ${token}` };
    }),
  ),
  end: JSON.stringify({ type: 'end' }),
  begun: 'ready',
  final: 'final',
});

/** Starts the systems. `inspector`: port of the edge runtime's profiler. */
export async function startSystems(folder: string, inspector?: number) {
  const identity = await makeIdentity(folder);
  const { double, port, relay } = await startPeer(folder);
  const edge = await startEdge(folder, identity, inspector);
  keepToWorkingCore(edge.pid);
  const { poolToken, attestationKeyFile, attestationIssuer } = identity;
  const told = { edgeUrl: `http://${edge.host}`, poolToken, attestationKeyFile, attestationIssuer };
  double.send({ join: { ...told, pool: POOL, zone: ZONE } } satisfies DoubleOrder);

  const systems = {
    bare: { name: 'no edge', pid: undefined, order: async () => ({ ...plain, url: `ws://127.0.0.1:${port}/bare` }) },
    relay,
    edge: {
      name: 'auricle',
      pid: edge.pid,
      order: () => edgeOrder(edge.host, identity, MODEL),
    },
  } as const satisfies Record<string, System>;
  await joined(systems.edge);
  return { double, ...systems };
}

function relayEntry(folder: string): string {
  const entry = path.join(folder, 'relay.js');
  const module = path.join(import.meta.dirname, 'relay-worker.ts');
  writeFileSync(entry, `export { worker as default, Relay } from ${JSON.stringify(module)};\n`);
  return entry;
}

/** Opens the streams, plays them, ends them; the double counts what arrived. */
export async function runPhase(
  system: System,
  double: ChildProcess,
  streams: number,
  seconds: number,
): Promise<EdgePhase> {
  await ask(double, { count: 'reset' });
  console.log(`${system.name}: ${streams} streams, ${seconds} s and ${WARM_SECONDS} s before`);
  const order: LoadOrder = { ...(await system.order()), streams, seconds, warmSeconds: WARM_SECONDS };
  let watch: ReturnType<typeof watchProcess> | undefined;
  const load = await runLoad(order, LOAD_CORES, () => {
    if (system.pid !== undefined) watch = watchProcess(system.pid, seconds + WARM_SECONDS);
  });
  const cost = watch?.stop();
  const counts = await ask(double, { count: 'read' });
  const phase: EdgePhase = {
    system: system.name,
    load,
    counts,
    lost: Math.max(0, load.sent - counts.bytes / FRAME_BYTES) + counts.wrong,
    cpuPerFrame: cost && (cost.cpu / load.sent) * 1e6,
    cost,
  };
  console.log(`${system.name}: ${JSON.stringify({ ...phase, cost: phase.cost ?? null })}`);
  return phase;
}

async function ask(double: ChildProcess, order: DoubleOrder): Promise<Counts> {
  const answer = next<{ counts: Counts }>(double, 'counts');
  double.send(order);
  return (await answer).counts;
}

/** Waits until the edge has an agent in its roster: one short stream of one client goes through. */
export async function joined(system: Pick<System, 'order'>): Promise<void> {
  const until = Date.now() + JOIN_MS_MAX;
  for (;;) {
    const load = await runLoad(
      { ...(await system.order()), streams: 1, seconds: 0.5, warmSeconds: 0 },
      LOAD_CORES,
      () => {},
    );
    if (load.ended === 1) return;
    if (Date.now() > until) throw new Error(`the edge opens no stream: ${JSON.stringify(load.failures)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
