// The real agent with an engine double behind it and an edge double before it.
import type { fork } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { JWK } from 'jose';
import { makeIdentity, POOL, ZONE } from '../front/identity.ts';
import { freePort, listens, startOn } from '../front/processes.ts';
import type { AgentLoadMessage, AgentLoadOrder, AgentLoadReport } from './agent-load.ts';
import { REPOSITORY, readSound, recogniseOnce } from './clip-sound.ts';
import { type EdgePhase, PEER_SECONDS_MAX, runPhase, startPeer } from './edge-half.ts';
import type { EngineOrder } from './engine-double.ts';
import { expectInterims } from './expected-interims.ts';
import { next } from './messages.ts';
import { ALL_CORES, keepToWorkingCore, LOAD_CORES } from './pin-threads.ts';
import { ENGINE_MS } from './traffic.ts';
import { type Cost, watchProcess } from './watch-process.ts';

const WARM_SECONDS = 5;
const AGENT = 'bench-agent-0';
export const MODEL = 'reference-en';
/** Steps of streams at the engine are counted by its slots; a double has as many as anybody wants. */
const SLOTS = 64;

export interface AgentPhase {
  readonly load: AgentLoadReport;
  readonly cpuPerFrame: number;
  readonly cost: Cost;
}

export interface AgentPlan {
  readonly folder: string;
  readonly streams: number;
  readonly seconds: number;
  /** Port at which the agent can be profiled, and who is told when it has all its streams. */
  readonly inspector?: number;
  readonly begun?: () => void;
}

/** Where the agent finds its edge and its engine, and whether its one thread keeps to a core. */
export interface AgentPlace {
  readonly folder: string;
  readonly engineUrl: string;
  readonly keepsToCore: boolean;
  readonly slots: number;
  readonly inspector?: number | undefined;
}

export interface AgentHalf {
  readonly agent: AgentPhase;
  /** The peer before the agent and after it. */
  readonly relay: readonly EdgePhase[];
}

/** The agent, and the bare relay of the edge's half beside it: the same frames at the same pace, one after the other. */
export async function measureAgentHalf(plan: AgentPlan): Promise<AgentHalf> {
  const short = Math.min(PEER_SECONDS_MAX, plan.seconds);
  const peer = await startPeer(plan.folder);
  const run = () => runPhase(peer.relay, peer.double, plan.streams, short);
  const before = await run();
  const agent = await measureAgent(plan);
  return { agent, relay: [before, await run()] };
}

export async function measureAgent(plan: AgentPlan): Promise<AgentPhase> {
  const { sound, speech } = readSound();
  const engine = startOn(LOAD_CORES, [process.execPath, path.join(import.meta.dirname, 'engine-double.ts')], {
    ipc: true,
  });
  const said = await recogniseOnce(speech);
  engine.send(said satisfies EngineOrder);
  const { port } = await next<{ port: number }>(engine, 'port');
  const { folder, inspector } = plan;
  const place = { folder, engineUrl: `http://127.0.0.1:${port}`, keepsToCore: true, slots: SLOTS, inspector };
  const { load, agent, ...started } = await startAgent(place);
  return runAgentLoad({ load, agent: agent.pid, ...started }, sound, {
    ...plan,
    engineMs: ENGINE_MS,
    expected: await expectInterims(said.logProbs, said.tokens),
  });
}

/** An agent in a process of its own, and the load client that it believes to be its edge. */
export async function startAgent({ folder, engineUrl, keepsToCore, slots, inspector }: AgentPlace) {
  const identity = await makeIdentity(folder);
  const load = startOn(LOAD_CORES, [process.execPath, path.join(import.meta.dirname, 'agent-load.ts')], { ipc: true });
  const { port: edgePort } = await next<{ port: number }>(load, 'port');
  const attested = next<{ attested: true }>(load, 'attested');
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
    AURICLE_EDGE_URL: `http://127.0.0.1:${edgePort}`,
    AURICLE_POOL_TOKEN_FILE: file('pool.token', identity.poolToken),
    AURICLE_EDGE_KEYS_FILE: file('edge.jwks.json', JSON.stringify({ keys: [publicKey] })),
    AURICLE_ATTESTATION_KEY_FILE: identity.attestationKeyFile,
    AURICLE_ATTESTATION_ISSUER: identity.attestationIssuer,
    AURICLE_STATE_DIR: path.join(folder, 'agent'),
    AURICLE_MODE: 'development',
    AURICLE_SLOTS: String(slots),
    AURICLE_STREAMS: '2048',
  };
  const inspect = inspector === undefined ? [] : [`--inspect=127.0.0.1:${inspector}`];
  const command = [process.execPath, ...inspect, path.resolve('infra/pool/agent/main.ts')];
  const agent = startOn(ALL_CORES, command, { env: environment });
  await listens(agentPort, agent);
  if (keepsToCore) keepToWorkingCore(agent.pid);
  const agentUrl = `http://127.0.0.1:${agentPort}`;
  await attested;
  for (;;) {
    const answer = await fetch(`${agentUrl}/readyz`);
    await answer.arrayBuffer();
    if (answer.ok) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { load, agent, agentUrl, ticketKey };
}

interface Started {
  readonly load: ReturnType<typeof fork>;
  readonly agent: number;
  readonly agentUrl: string;
  readonly ticketKey: JWK;
}

export async function runAgentLoad(
  { load, agent, agentUrl, ticketKey }: Started,
  sound: Buffer,
  {
    streams,
    seconds,
    engineMs,
    expected,
    begun,
  }: Pick<AgentLoadOrder, 'streams' | 'seconds' | 'engineMs' | 'expected'> & Pick<AgentPlan, 'begun'>,
): Promise<AgentPhase> {
  const reported = next<Extract<AgentLoadMessage, { report: unknown }>>(load, 'report');
  const began = next<{ began: true }>(load, 'began');
  const order = {
    ticketKey,
    model: MODEL,
    agentUrl,
    agent: AGENT,
    streams,
    seconds,
    engineMs,
    expected,
    warmSeconds: WARM_SECONDS,
  };
  console.log(`agent: ${streams} streams, ${seconds} s and ${WARM_SECONDS} s before`);
  load.send({ ...order, sound: sound.toString('base64') } satisfies AgentLoadOrder);
  await began;
  begun?.();
  const watch = watchProcess(agent, seconds + WARM_SECONDS);
  const { report } = await reported;
  const cost = watch.stop();
  console.log(`agent: ${JSON.stringify(report)}`);
  return { load: report, cost, cpuPerFrame: (cost.cpu / report.sent) * 1e6 };
}
