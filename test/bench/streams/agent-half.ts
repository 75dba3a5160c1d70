// The real agent with an engine double behind it and an edge double before it.
import type { fork } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { JWK } from 'jose';
import { type Identity, makeIdentity, POOL, ZONE } from '../front/identity.ts';
import { freePort, listens, startOn } from '../front/processes.ts';
import type { AgentLoadMessage, AgentLoadOrder, AgentLoadReport } from './agent-load.ts';
import { REPOSITORY, readSound, recogniseOnce } from './clip-sound.ts';
import { type EdgePhase, PEER_SECONDS_MAX, runPhase, startPeer } from './edge-half.ts';
import type { EngineOrder } from './engine-double.ts';
import { expectInterims } from './expected-interims.ts';
import { mergeReports, mostOf, sumOf } from './merge-reports.ts';
import { next } from './messages.ts';
import { ALL_CORES, keepToWorkingCore, loadCores, spreadWorkers } from './pin-threads.ts';
import { ENGINE_MS } from './traffic.ts';
import { type Cost, watchProcess } from './watch-process.ts';

const WARM_SECONDS = 5;
const AGENT = 'bench-agent-0';
export const MODEL = 'reference-en';
/** Slots of the engine double, which has no bound of its own. */
const SLOTS = 64;
/** Streams of one load client, and of one thread of the engine double: a third of what either carries. */
const STREAMS_PER_CLIENT = 300;

export interface AgentPhase {
  readonly load: AgentLoadReport;
  readonly cpuPerFrame: number;
  readonly cost: Cost;
}

export interface AgentPlan {
  readonly folder: string;
  readonly streams: number;
  readonly seconds: number;
  /** Processes of the agent that carry streams; 1 is its own. */
  readonly workers: number;
  /** Port of the agent's profiler, and the callback once all streams are open. */
  readonly inspector?: number;
  readonly begun?: () => void;
}

/** Parameters of the agent's start. `pinned`: each thread that carries streams has a core of its own. */
export interface AgentPlace {
  readonly folder: string;
  readonly engineUrl: string;
  readonly pinned: boolean;
  readonly workers: number;
  readonly slots: number;
  readonly inspector?: number | undefined;
}

export interface AgentHalf {
  readonly agent: AgentPhase;
  /** The peer before the agent and after it. */
  readonly relay: readonly EdgePhase[];
}

/**
 * The agent, and the bare relay of the edge's half before and after it with the same frames at the same pace. The relay
 * has one thread, so an agent with workers is measured without it.
 */
export async function measureAgentHalf(plan: AgentPlan): Promise<AgentHalf> {
  if (plan.workers > 1) return { agent: await measureAgent(plan), relay: [] };
  const short = Math.min(PEER_SECONDS_MAX, plan.seconds);
  const peer = await startPeer(plan.folder);
  const run = () => runPhase(peer.relay, peer.double, plan.streams, short);
  const before = await run();
  const agent = await measureAgent(plan);
  return { agent, relay: [before, await run()] };
}

export async function measureAgent(plan: AgentPlan): Promise<AgentPhase> {
  const { sound, speech } = readSound();
  const { folder, inspector, workers, streams } = plan;
  const command = [process.execPath, path.join(import.meta.dirname, 'engine-double.ts')];
  const engine = startOn(loadCores(workers), command, { ipc: true });
  const said = await recogniseOnce(speech);
  engine.send({ ...said, threads: Math.ceil(streams / STREAMS_PER_CLIENT) } satisfies EngineOrder);
  const { port } = await next<{ port: number }>(engine, 'port');
  const engineUrl = `http://127.0.0.1:${port}`;
  const { agent, ...started } = await startAgent({ folder, engineUrl, pinned: true, workers, slots: SLOTS, inspector });
  return runAgentLoad({ agent: agent.pid, ...started }, sound, {
    ...plan,
    engineMs: ENGINE_MS,
    expected: await expectInterims(said.logProbs, said.tokens),
  });
}

const startLoad = (workers: number) =>
  startOn(loadCores(workers), [process.execPath, path.join(import.meta.dirname, 'agent-load.ts')], { ipc: true });

/** Parameters of an agent for any edge. */
export interface AgentLaunch extends Omit<AgentPlace, 'pinned'> {
  readonly identity: Identity;
  readonly edgeUrl: string;
  /** Variables that replace those of the usual agent. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** An agent in a process of its own, and its workers; listening, maybe not ready. */
export async function launchAgent(launch: AgentLaunch) {
  const { folder, identity, edgeUrl, engineUrl, workers, slots, inspector, variables } = launch;
  const ticketKey: JWK = JSON.parse(identity.edgeBindings.TICKET_KEY as string);
  const { d: _, ...publicKey } = ticketKey;
  const file = (name: string, content: string) => {
    const full = path.join(folder, name);
    writeFileSync(full, content);
    return full;
  };
  mkdirSync(path.join(folder, 'agent'), { recursive: true });
  const agentPort = await freePort();
  const environment = {
    AURICLE_AGENT: AGENT,
    AURICLE_POOL: POOL,
    AURICLE_ZONE: ZONE,
    AURICLE_REGION: 'bench',
    AURICLE_HOST: '127.0.0.1',
    AURICLE_PORT: String(agentPort),
    AURICLE_ENGINE_URL: engineUrl,
    AURICLE_MODELS: REPOSITORY,
    AURICLE_EDGE_URL: edgeUrl,
    AURICLE_POOL_TOKEN_FILE: file('pool.token', identity.poolToken),
    AURICLE_EDGE_KEYS_FILE: file('edge.jwks.json', JSON.stringify({ keys: [publicKey] })),
    AURICLE_ATTESTATION_KEY_FILE: identity.attestationKeyFile,
    AURICLE_ATTESTATION_ISSUER: identity.attestationIssuer,
    AURICLE_STATE_DIR: path.join(folder, 'agent'),
    AURICLE_MODE: 'development',
    AURICLE_SLOTS: String(slots),
    AURICLE_STREAMS: '8192',
    AURICLE_WORKERS: String(workers),
    ...variables,
  };
  const inspect = inspector === undefined ? [] : [`--inspect=127.0.0.1:${inspector}`];
  const command = [process.execPath, ...inspect, path.resolve('infra/pool/agent/main.ts')];
  const agent = startOn(ALL_CORES, command, { env: environment });
  await listens(agentPort, agent);
  return { agent, agentUrl: `http://127.0.0.1:${agentPort}`, ticketKey };
}

/** An agent in a process of its own, and the load client that it believes to be its edge. */
export async function startAgent({ folder, engineUrl, pinned, workers, slots, inspector }: AgentPlace) {
  const identity = await makeIdentity(folder);
  const load = startLoad(workers);
  const { port: edgePort } = await next<{ port: number }>(load, 'port');
  const attested = next<{ attested: string }>(load, 'attested');
  const edgeUrl = `http://127.0.0.1:${edgePort}`;
  const { agent, agentUrl, ticketKey } = await launchAgent({
    folder,
    identity,
    edgeUrl,
    engineUrl,
    workers,
    slots,
    inspector,
  });
  if (pinned && workers === 1) keepToWorkingCore(agent.pid);
  if (pinned && workers > 1) spreadWorkers(agent.pid);
  const { attested: attestation } = await attested;
  for (;;) {
    const answer = await fetch(`${agentUrl}/readyz`);
    await answer.arrayBuffer();
    if (answer.ok) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { load, agent, agentUrl, ticketKey, attestation, workers };
}

interface Started {
  readonly load: ReturnType<typeof fork>;
  readonly agent: number;
  readonly agentUrl: string;
  readonly ticketKey: JWK;
  readonly attestation: string;
  readonly workers: number;
}

/** Load clients for so many streams: the agent's edge, and others beside it. */
function startClients({ load, workers }: Started, streams: number) {
  const count = workers === 1 ? 1 : Math.ceil(streams / STREAMS_PER_CLIENT);
  const clients = [load, ...Array.from({ length: count - 1 }, () => startLoad(workers))];
  return clients.map((client, at) => {
    const first = Math.floor((streams * at) / count);
    return { client, first, streams: Math.floor((streams * (at + 1)) / count) - first };
  });
}

export async function runAgentLoad(
  started: Started,
  sound: Buffer,
  {
    streams,
    seconds,
    engineMs,
    expected,
    begun,
  }: Pick<AgentLoadOrder, 'streams' | 'seconds' | 'engineMs' | 'expected'> & Pick<AgentPlan, 'begun'>,
): Promise<AgentPhase> {
  const { agent, agentUrl, ticketKey, attestation } = started;
  const shared = { ticketKey, model: MODEL, agentUrl, agent: AGENT, seconds, engineMs, expected, attestation };
  const clients = startClients(started, streams);
  const reported = clients.map(({ client }) => next<Extract<AgentLoadMessage, { report: unknown }>>(client, 'report'));
  const began = clients.map(({ client }) => next<{ began: true }>(client, 'began'));
  console.log(`agent: ${streams} streams, ${seconds} s and ${WARM_SECONDS} s before`);
  for (const { client, first, streams: own } of clients) {
    const order = { ...shared, first, streams: own, warmSeconds: WARM_SECONDS, sound: sound.toString('base64') };
    client.send(order satisfies AgentLoadOrder);
  }
  await Promise.all(began);
  begun?.();
  const watch = watchProcess(agent, seconds + WARM_SECONDS);
  const reports = (await Promise.all(reported)).map((one) => one.report);
  const report = {
    ...mergeReports(reports),
    interims: sumOf(reports, ({ interims }) => interims),
    segments: sumOf(reports, ({ segments }) => segments),
    unexpected: sumOf(reports, ({ unexpected }) => unexpected),
    wordP50: mostOf(reports, ({ wordP50 }) => wordP50),
    wordP99: mostOf(reports, ({ wordP99 }) => wordP99),
  };
  const cost = watch.stop();
  for (const { client } of clients.slice(1)) client.disconnect();
  console.log(`agent: ${JSON.stringify(report)}`);
  return { load: report, cost, cpuPerFrame: (cost.cpu / report.sent) * 1e6 };
}
