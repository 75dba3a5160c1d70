// Streams through everything: edges, seals and real agents, an engine double behind them.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { makeIdentity } from '../front/identity.ts';
import { startOn } from '../front/processes.ts';
import { launchAgent, MODEL } from './agent-half.ts';
import { readSound, recogniseOnce } from './clip-sound.ts';
import { edgeOrder, joined, startEdge } from './edge-half.ts';
import type { EngineOrder } from './engine-double.ts';
import { runLoad } from './load-process.ts';
import { mergeReports, sumOf } from './merge-reports.ts';
import { next } from './messages.ts';
import { ALL_CORES } from './pin-threads.ts';
import type { LoadReport } from './stream-load.ts';
import { watchProcess } from './watch-process.ts';

/** Streams of one edge process, which is one isolate on one thread, and the workers of the agent behind it. */
const STREAMS_PER_EDGE = 360;
const WORKERS_PER_EDGE = 1;
const ENGINE_SLOTS = 64;
const STREAMS_PER_ENGINE_THREAD = 300;
const WARM_SECONDS = 5;

export interface WholePath {
  readonly edges: number;
  /** Counts of all load clients; percentiles are those of the worst one. */
  readonly load: LoadReport;
  /** CPU time per frame, µs, of all edges and of all agents. */
  readonly edgeCpu: number;
  readonly agentCpu: number;
}

export interface WholePlan {
  readonly folder: string;
  readonly streams: number;
  readonly seconds: number;
}

/** One edge process for each 360 streams, each with a zone, an agent and a load client of its own. */
export async function measureWholePath({ folder, streams, seconds }: WholePlan): Promise<WholePath> {
  const { sound, speech } = readSound();
  const engineUrl = await startEngine(speech, streams);
  const edges = Math.ceil(streams / STREAMS_PER_EDGE);
  const paths: Awaited<ReturnType<typeof startPath>>[] = [];
  for (let at = 0; at < edges; at += 1) paths.push(await startPath(path.join(folder, `path-${at}`), engineUrl));
  console.log(`whole path: ${streams} streams through ${edges} edges, ${seconds} s and ${WARM_SECONDS} s before`);
  const watches = paths.map(({ edge, agent }) => ({
    edge: watchProcess(edge, seconds),
    agent: watchProcess(agent, seconds),
  }));
  const reports = await Promise.all(
    paths.map(async ({ order }, at) => {
      const own = Math.floor((streams * (at + 1)) / edges) - Math.floor((streams * at) / edges);
      const pace = { streams: own, seconds, warmSeconds: WARM_SECONDS, sound: sound.toString('base64') };
      return runLoad({ ...(await order()), ...pace }, ALL_CORES, () => {});
    }),
  );
  const costs = watches.map(({ edge, agent }) => ({ edge: edge.stop().cpu, agent: agent.stop().cpu }));
  const load = { ...mergeReports(reports), answers: sumOf(reports, ({ answers }) => answers) };
  const perFrame = (part: 'edge' | 'agent') => (costs.reduce((sum, cost) => sum + cost[part], 0) / load.sent) * 1e6;
  console.log(`whole path: ${JSON.stringify(load)}`);
  return { edges, load, edgeCpu: perFrame('edge'), agentCpu: perFrame('agent') };
}

async function startEngine(speech: Int16Array, streams: number): Promise<string> {
  const command = [process.execPath, path.join(import.meta.dirname, 'engine-double.ts')];
  const engine = startOn(ALL_CORES, command, { ipc: true });
  const threads = Math.ceil(streams / STREAMS_PER_ENGINE_THREAD);
  engine.send({ ...(await recogniseOnce(speech)), threads } satisfies EngineOrder);
  const { port } = await next<{ port: number }>(engine, 'port');
  return `http://127.0.0.1:${port}`;
}

/** An edge, and an agent in its roster. */
async function startPath(folder: string, engineUrl: string) {
  mkdirSync(folder, { recursive: true });
  const identity = await makeIdentity(folder);
  const edge = await startEdge(folder, identity);
  const edgeUrl = `http://${edge.host}`;
  const place = { engineUrl, workers: WORKERS_PER_EDGE, slots: ENGINE_SLOTS };
  const { agent } = await launchAgent({ folder, identity, edgeUrl, ...place });
  const order = () => edgeOrder(edge.host, identity, MODEL);
  await joined({ order });
  return { edge: edge.pid, agent: agent.pid, order };
}
