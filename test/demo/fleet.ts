// The local stack, and nodes that join one of its pools with a repository of their own: so that two revisions of a model are
// served at once, as they are in a fleet.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { listedPool } from '../../edge/routing/list-pools.ts';
import { knownReleases } from '../../edge/routing/release.ts';
import { type Identity, makeIdentity } from '../../infra/local/identity/make.ts';
import { openLog } from '../../infra/local/logs.ts';
import { inPlace, type LoweredLimits, planParts, withLimits } from '../../infra/local/plan.ts';
import { pools } from '../../infra/local/pools.ts';
import { choosePorts, HOST } from '../../infra/local/ports.ts';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { type Supervised, supervise } from '../../infra/local/supervise.ts';

/**
 * A rollout takes a fleet hours to days. Smaller here: streams of a canary before its next share, what is known of the
 * revision before, how far out slow begins (more streams are slow then, and fewer are needed to tell), and how long things
 * settle. What may be told wrongly, and how often, is what it is everywhere.
 */
export const LIMITS = {
  'shared/registry/canary.ts': { CANARY_STREAMS: 3 },
  'functions/registry/trial.ts': { LIVE_BASELINE_STREAMS: 200, LIVE_SETTLE_S: 3 },
  'shared/registry/live-counts.ts': { LIVE_QUANTILE: 0.6 },
  'infra/pool/agent/live-counts/report.ts': { LIVE_REPORT_S: 1 },
  'shared/registry/release.ts': { MIRROR_SHARE: 0.5 },
};

/** The pool that nodes join. */
const POOL = pools[0];

export interface Node {
  /** Its agent, by name. */
  readonly agent: string;
  /** URL of its engine. */
  readonly engine: string;
  stop(): Promise<void>;
}

export interface Fleet {
  readonly stack: Stack;
  readonly identity: Identity;
  /** State folder of everything created meanwhile. */
  readonly state: string;
  /** A folder of its own in it. */
  folder(name: string): string;
  /** An engine and an agent on another repository; it has joined the roster when this settles. */
  addNode(name: string, repository: string): Promise<Node>;
  stop(): Promise<void>;
}

export async function startFleet(signal: AbortSignal): Promise<Fleet> {
  const state = mkdtempSync(path.join(os.tmpdir(), 'auricle-demo-'));
  const nodes = new Set<Node>();
  let stopped = false;
  let stack: Stack;
  try {
    stack = await startStack({ port: 0, state, signal, limits: LIMITS });
  } catch (error) {
    rmSync(state, { recursive: true, force: true });
    throw error;
  }
  const identity = await makeIdentity(state, [...pools]);
  return {
    stack,
    identity,
    state,
    folder: (name) => path.join(state, 'demo', name),
    async addNode(name, repository) {
      // Whatever is under way when all of it is stopped starts nothing any more.
      if (stopped) throw new Error('the fleet was stopped');
      const node = await planNode({ stack, identity, state, limits: LIMITS }, name, repository);
      const stop = async () => {
        nodes.delete(node);
        await node.stop();
      };
      nodes.add(node);
      await node.join();
      return { ...node, stop };
    },
    async stop() {
      stopped = true;
      await Promise.all([...nodes].map((node) => node.stop()));
      await stack.stop();
      rmSync(state, { recursive: true, force: true });
    },
  };
}

/** Stack that a node joins, with its identity and state folder. */
export interface Place {
  readonly stack: Stack;
  readonly identity: Identity;
  readonly state: string;
  readonly limits?: LoweredLimits;
}

/** A node that runs once it is told to join, which settles when it is known. */
export async function planNode(
  { stack, identity, state, limits }: Place,
  name: string,
  repository: string,
): Promise<Node & { join(): Promise<void> }> {
  const [engine, metrics, agent] = await choosePorts(3);
  const own = { [`engine-${POOL.name}`]: engine, [`metrics-${POOL.name}`]: metrics, [`agent-${POOL.name}`]: agent };
  const ports = { ...stack.ports, ...(own as Record<string, number>) };
  const running: Supervised[] = planParts({ state, edgePort: Number(new URL(stack.url).port), ports, identity, pools })
    .filter((part) => [`engine-${POOL.name}`, `agent-${POOL.name}`].includes(part.name))
    .map((part) => withLimits(inPlace(part, repository), limits))
    .map((part) => ({ ...part, name: `${part.name}-${name}` }))
    .map((part) => ({ ...part, env: { ...part.env, ...ownNames(part.env, name, state) } }))
    .map((part) => supervise(part, openLog(path.join(state, 'logs'), part.name, undefined), () => {}));
  const named = `${POOL.name}-${name}`;
  const stop = async () => void (await Promise.all(running.toReversed().map((one) => one.stop())));
  return {
    agent: named,
    engine: `http://${HOST}:${engine}`,
    stop,
    async join() {
      try {
        for (const one of running) one.begin();
        await Promise.all(running.map((one) => one.started));
        await waitUntil(async () => (await readAgents(stack)).includes(named));
      } catch (error) {
        await stop();
        throw error;
      }
    },
  };
}

/** An agent has a name and a memory of its own. */
const ownNames = (env: Readonly<Record<string, string>>, name: string, state: string): Record<string, string> =>
  env.AURICLE_AGENT === undefined
    ? {}
    : { AURICLE_AGENT: `${POOL.name}-${name}`, AURICLE_STATE_DIR: path.join(state, 'agents', `${POOL.name}-${name}`) };

const listed = z.object({ data: z.array(listedPool) });

/** Reads an operator route of the edge. */
async function read({ url, token }: Stack, route: string): Promise<unknown> {
  return (await fetch(`${url}${route}`, { headers: { authorization: `Bearer ${token}` } })).json();
}

const readPools = async (stack: Stack) => listed.parse(await read(stack, '/v1/pools')).data;

/** Agents that take work. */
export const readAgents = async (stack: Stack): Promise<string[]> =>
  (await readPools(stack)).flatMap(({ agent, health }) => (health === 'ready' ? [agent] : []));

const readReleases = async (stack: Stack) => knownReleases.parse(await read(stack, '/v1/release')).zones;

/** Returns the revision of `stable` in each Roster. */
export const readStable = async (stack: Stack, model: string): Promise<(string | undefined)[]> =>
  (await readReleases(stack)).map(({ models }) => models[model]?.stable);

/** Agents at work that go by another generation of the release map than the newest at the edge. */
export async function readBehind(stack: Stack): Promise<string[]> {
  const newest = Math.max(...(await readReleases(stack)).map(({ generation }) => generation));
  return (await readPools(stack)).flatMap(({ agent, health, release }) =>
    health === 'ready' && release !== newest ? [agent] : [],
  );
}

/** Looks every 100 ms; throws after half a minute. */
export async function waitUntil(seen: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await seen())) {
    if (Date.now() > deadline) throw new Error(`it did not come about within 30 s: ${String(seen)}`);
    await new Promise((settle) => setTimeout(settle, 100));
  }
}
