// The requests of a scenario on real processes: the edge on workerd, agents, and engine doubles that sleep.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type KserveEngine, startKserveEngine } from '../../fake/kserve-engine.ts';
import { makeIdentity } from '../front/identity.ts';
import { launchAgent } from '../streams/agent-half.ts';
import { startEdge } from '../streams/edge-half.ts';
import { MODEL, type Waits } from './predict.ts';
import { type Arrival, agents, type Scenario } from './scenarios.ts';

const JOIN_MS_MAX = 30_000;
/** Requests to an idle system before a scenario, one after the other, and their service time. */
const PROBES = 20;
/** Requests that warm the compilers of a new system, and how many are open at once. */
const WARM = { requests: 240, atOnce: 4 } as const;
const PROBE_MS = 50;

const CONFIG = `name: "${MODEL}"
backend: "python"
parameters { key: "task" value { string_value: "infer" } }
parameters { key: "language" value { string_value: "zxx" } }
`;

/** An engine that sleeps. */
class Sleeper {
  slowness = 1;
  /** Requests begun, and milliseconds slept for them. */
  begun = 0;
  sleptMs = 0;
  /** Begin of each request that has no answer yet, by the number in its text. */
  readonly #begins: Map<string, number>;

  constructor(engine: KserveEngine, begins: Map<string, number>) {
    this.#begins = begins;
    engine.generate = (body, response) => {
      const { text_input: text } = JSON.parse(body || '{}') as { text_input?: string };
      // The agent looks for an index of the repository, too.
      if (text === undefined) response.writeHead(404).end();
      else this.#sleep(text, () => void response.end('{"text_output":"done"}'));
    };
  }

  /** Sleeps for the milliseconds behind the number in a text. */
  #sleep(text: string, then: () => void): void {
    const [id = '', ms] = text.split(' ');
    const from = performance.now();
    this.#begins.set(id, from);
    this.begun += 1;
    const end = () => {
      this.sleptMs += performance.now() - from;
      then();
    };
    setTimeout(end, Number(ms) * this.slowness);
  }
}

export interface Replayed {
  readonly waits: Waits;
  /** Mean time of a request on its way to an idle engine, ms; the waits are without it. */
  readonly pathMs: number;
  /** Time that a request holds its slot beyond the engine's own, ms. */
  readonly callMs: number;
}

type Work = Pick<Arrival, 'class' | 'tenant' | 'serviceMs'>;

const probe: Work = { class: 'realtime', tenant: 'validity-0', serviceMs: PROBE_MS };

/** Returns what sends a request and resolves with the ms until an engine began with it; `undefined`: refused. */
function createSender(edgeUrl: string, tokenOf: (tenant: string) => Promise<string>, begins: Map<string, number>) {
  const tokens = new Map<string, Promise<string>>();
  let sent = 0;
  return async ({ class: name, tenant, serviceMs }: Work): Promise<number | undefined> => {
    const token = tokens.get(tenant) ?? tokenOf(tenant);
    tokens.set(tenant, token);
    sent += 1;
    const id = String(sent);
    const authorization = `Bearer ${await token}`;
    const from = performance.now();
    const answer = await fetch(`${edgeUrl}/v2/models/${MODEL}/generate`, {
      method: 'POST',
      headers: { authorization, 'x-auricle-class': name, 'content-type': 'application/json' },
      body: JSON.stringify({ text_input: `${id} ${serviceMs}` }),
    });
    await answer.arrayBuffer();
    const at = begins.get(id);
    begins.delete(id);
    return answer.status === 200 && at !== undefined ? at - from : undefined;
  };
}

interface Member {
  readonly sleeper: Sleeper;
  readonly agentUrl: string;
  readonly stop: () => Promise<void>;
}

/** Returns the milliseconds for which requests have held slots of the agents beyond the engines' own. */
async function readCallMs(members: readonly Member[]): Promise<number> {
  const pages = await Promise.all(members.map(async ({ agentUrl }) => (await fetch(`${agentUrl}/metrics`)).text()));
  const held = pages.map((page) => Number(/^auricle_agent_service_seconds_sum (\S+)$/m.exec(page)?.[1] ?? 0) * 1_000);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return sum(held) - sum(members.map(({ sleeper }) => sleeper.sleptMs));
}

/** Starts the edge and the agents; returns a replay of scenarios, one after the other. */
export async function startSystem(folder: string) {
  const repository = path.join(folder, 'models');
  mkdirSync(path.join(repository, MODEL, '1'), { recursive: true });
  writeFileSync(path.join(repository, MODEL, 'config.pbtxt'), CONFIG);
  const identity = await makeIdentity(folder);
  const edge = await startEdge(folder, identity);
  const edgeUrl = `http://${edge.host}`;
  const begins = new Map<string, number>();
  const startMember = async ({ name, slots }: (typeof agents)[number]): Promise<Member> => {
    const engine = await startKserveEngine();
    const own = path.join(folder, name);
    mkdirSync(own, { recursive: true });
    const { agentUrl } = await launchAgent({
      ...{ folder: own, edgeUrl, engineUrl: engine.url, workers: 1, slots },
      identity: { ...identity, poolToken: await identity.poolTokenOf(name) },
      variables: {
        ...{ AURICLE_AGENT: name, AURICLE_POOL: name, AURICLE_MODELS: repository },
        AURICLE_DEGRADE_WINDOW_SECONDS: '0',
      },
    });
    return { sleeper: new Sleeper(engine, begins), agentUrl, stop: engine.stop };
  };
  const members = await Promise.all(agents.map(startMember));
  const claims = { scope: 'infer', priority: 'realtime' };
  const send = createSender(edgeUrl, (tenant) => identity.tenantToken(tenant, 'buffered', claims), begins);
  await join(members, send);
  const warm = async () => {
    for (let at = 0; at < WARM.requests / WARM.atOnce; at += 1) await send(probe);
  };
  await Promise.all(Array.from({ length: WARM.atOnce }, warm));
  return {
    replay: (scenario: Scenario, arrivals: readonly Arrival[]) => replay({ members, send, scenario, arrivals }),
    stop: () => Promise.all(members.map(({ stop }) => stop())),
  };
}

/** Sends requests until each agent has served one. */
async function join(members: readonly Member[], send: ReturnType<typeof createSender>): Promise<void> {
  const until = Date.now() + JOIN_MS_MAX;
  while (members.some(({ sleeper }) => sleeper.begun === 0)) {
    await send(probe);
    if (Date.now() > until) throw new Error('an agent serves nothing');
  }
}

/** Measures an idle system by requests one after the other. */
async function calibrate(members: readonly Member[], send: ReturnType<typeof createSender>) {
  const before = await readCallMs(members);
  let sum = 0;
  for (let at = 0; at < PROBES; at += 1) {
    const ms = await send(probe);
    if (ms === undefined) throw new Error('an idle fleet refuses a request');
    sum += ms;
  }
  return { pathMs: sum / PROBES, callMs: ((await readCallMs(members)) - before) / PROBES };
}

interface Replay {
  readonly members: readonly Member[];
  readonly send: ReturnType<typeof createSender>;
  readonly scenario: Scenario;
  readonly arrivals: readonly Arrival[];
}

/** Sends the requests at their times. */
async function replay({ members, send, scenario: { slow }, arrivals }: Replay): Promise<Replayed> {
  const { pathMs, callMs } = await calibrate(members, send);
  const from = performance.now();
  const [first] = members;
  if (slow && first) {
    const setAt = (second: number, factor: number) =>
      setTimeout(() => {
        first.sleeper.slowness = factor;
      }, second * 1_000);
    setAt(slow.fromS, slow.factor);
    setAt(slow.untilS, 1);
  }
  const open: Promise<number | undefined>[] = [];
  for (const arrival of arrivals) {
    const left = from + arrival.atMs - performance.now();
    if (left > 0) await sleep(left);
    open.push(send(arrival));
  }
  const times = await Promise.all(open);
  const waits = times.map((ms) => (ms === undefined ? undefined : Math.max(0, ms - pathMs)));
  return { waits, pathMs, callMs };
}
