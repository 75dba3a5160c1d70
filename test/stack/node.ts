// An engine and an agent that join a pool of the running stack with a repository of their own.
import path from 'node:path';
import { z } from 'zod';
import { listedPool } from '../../edge/operate.ts';
import { knownReleases } from '../../edge/pool/release.ts';
import type { Identity } from '../../infra/local/identity/make.ts';
import { openLog } from '../../infra/local/logs.ts';
import { onModels, planParts, pools } from '../../infra/local/plan.ts';
import { choosePorts } from '../../infra/local/ports.ts';
import type { Stack } from '../../infra/local/stack.ts';
import { type Supervised, supervise } from '../../infra/local/supervise.ts';

const POOL = pools[0];

export interface JoiningNode {
  /** Starts the node. Resolves when its agent takes work. */
  join(): Promise<void>;
  stop(): Promise<void>;
}

export interface NodePlan {
  readonly stack: Stack;
  readonly identity: Identity;
  readonly state: string;
  readonly name: string;
  readonly repository: string;
}

export async function planNode({ stack, identity, state, name, repository }: NodePlan): Promise<JoiningNode> {
  const [engine, metrics, agent] = await choosePorts(3);
  const own = { [`engine-${POOL.name}`]: engine, [`metrics-${POOL.name}`]: metrics, [`agent-${POOL.name}`]: agent };
  const ports = { ...stack.ports, ...(own as Record<string, number>) };
  const named = `${POOL.name}-${name}`;
  const running: Supervised[] = planParts(state, Number(new URL(stack.url).port), ports, identity)
    .filter((part) => [`engine-${POOL.name}`, `agent-${POOL.name}`].includes(part.name))
    .map((part) => onModels(part, repository))
    .map((part) => ({ ...part, name: `${part.name}-${name}`, env: withNames(part.env, named, state) }))
    .map((part) => supervise(part, openLog(path.join(state, 'logs'), part.name, undefined), () => {}));
  const stop = async () => void (await Promise.all(running.toReversed().map((one) => one.stop())));
  return {
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

/** Returns the environment of a part; an agent gets its own name and state folder. */
const withNames = (
  env: Readonly<Record<string, string>>,
  agent: string,
  state: string,
): Readonly<Record<string, string>> =>
  env.AURICLE_AGENT === undefined
    ? env
    : { ...env, AURICLE_AGENT: agent, AURICLE_STATE_DIR: path.join(state, 'agents', agent) };

const listed = z.object({ data: z.array(listedPool) });

async function read({ url, token }: Stack, route: string): Promise<unknown> {
  return (await fetch(`${url}${route}`, { headers: { authorization: `Bearer ${token}` } })).json();
}

const readPools = async (stack: Stack) => listed.parse(await read(stack, '/v1/pools')).data;

/** Names of the agents that take work. */
const readAgents = async (stack: Stack): Promise<string[]> =>
  (await readPools(stack)).flatMap(({ agent, health }) => (health === 'ready' ? [agent] : []));

const readReleases = async (stack: Stack) => knownReleases.parse(await read(stack, '/v1/release')).zones;

/** Returns the revision behind the alias `stable` in the registry of each zone. */
export const readStable = async (stack: Stack, model: string): Promise<(string | undefined)[]> =>
  (await readReleases(stack)).map(({ models }) => models[model]?.stable);

/** Returns the ready agents that hold an older release map than the edge. */
export async function readBehind(stack: Stack): Promise<string[]> {
  const newest = Math.max(...(await readReleases(stack)).map(({ generation }) => generation));
  return (await readPools(stack)).flatMap(({ agent, health, release }) =>
    health === 'ready' && release !== newest ? [agent] : [],
  );
}

/** Polls every 100 ms. Throws after 30 s. */
async function waitUntil(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`timed out after 30 s: ${String(condition)}`);
    await new Promise((settle) => setTimeout(settle, 100));
  }
}
