// The whole stack as a value, started by `npm start` and by tests that need all of it.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { installWhisper } from '../pool/model-build/whisper/install-whisper.ts';
import type { Installed } from '../pool/triton/install.ts';
import { run } from '../pool/triton/run.ts';
import { type Identity, makeIdentity } from './identity/make.ts';
import { ensureTriton } from './install-triton.ts';
import { openLog } from './logs.ts';
import type { Part, PartName } from './part.ts';
import {
  type EngineName,
  inTurn,
  isLater,
  type LoweredLimits,
  onModels,
  type Ports,
  planParts,
  portNamesOf,
  type Variables,
  withLimits,
  withSettings,
} from './plan.ts';
import { type Pool, pools as usualPools } from './pools.ts';
import { choosePorts, HOST, isFree } from './ports.ts';
import { waitUntilServing } from './serving.ts';
import { StartProblem } from './start-problem.ts';
import { lockState, type StateLock } from './state-lock.ts';
import { type Supervised, supervise } from './supervise.ts';
import type { StackTerminal } from './terminal.ts';

/** Value of `models` that stands for an installed Whisper. */
const NATURAL = 'natural';

export type StackOptions = {
  /** Port of the edge; 0 chooses a free one. */
  port: number;
  /** State folder; made if missing. */
  state: string;
  /** Lets other machines of the network reach the edge. */
  open?: boolean;
  /** Receives the lines of the parts, which their log files have too. */
  onLine?: StackTerminal['line'];
  /** Receives the progress of a first start on Triton. */
  onProgress?: (line: string) => void;
  /** Model repository, or `natural`: Whisper, installed into the state folder. By default the reference models. */
  models?: string;
  /** Pools to start; by default those of `pools.ts` for a start without `--pools`. */
  pools?: readonly Pool[];
  /** Starts the other pools when the first one serves, and does not wait for them. */
  poolsInTurn?: boolean;
  /** Engine of the pools; the embedded one by default. */
  engine?: EngineName;
  /** Lowered limits, for demonstrations that must not take days. */
  limits?: LoweredLimits;
  /** Further settings of the agents. */
  agentSettings?: Readonly<Record<string, string>>;
  /** Variables of OpenTelemetry that name a collector of traces, for edge and agents. */
  collector?: Variables;
  /** Parts to start; all by default. Without the edge there is no URL to wait for. */
  parts?: PartName[];
  /** Aborts a start without remains. */
  signal?: AbortSignal;
};

export type Stack = {
  url: string;
  token: string;
  tokenFile: string;
  /** Names of the running parts. */
  parts: PartName[];
  engine: EngineName;
  /** Other machines of the network may reach the edge. */
  open: boolean;
  pools: Pool[];
  readyMs: number;
  /** Ports of the parts, for tests that call one directly. */
  ports: Ports;
  pid(part: PartName): number | undefined;
  isReady(part: PartName): boolean;
  /** Kills one part; the supervisor restarts it. */
  kill(part: PartName, signal?: NodeJS.Signals): void;
  stop(): Promise<void>;
};

async function ensureWhisper(folder: string, log: (line: string) => void = () => {}): Promise<void> {
  const installed = await installWhisper(folder, { run, log });
  if (!installed.ok) throw new StartProblem(`--models ${NATURAL}: ${installed.problem}`);
}

export async function startStack(options: StackOptions): Promise<Stack> {
  const startedAt = performance.now();
  const state = path.resolve(options.state);
  const [port] = options.port === 0 ? await choosePorts(1) : [options.port];
  if (port === undefined) throw new Error('no port');
  const url = `http://${HOST}:${port}`;

  const natural = options.models === NATURAL;
  const given = natural ? path.join(state, 'models', NATURAL) : options.models;
  const models = given === undefined ? undefined : path.resolve(given);
  if (models !== undefined && !natural && !hasModels(models))
    throw new StartProblem(`${models} holds no model: no folder in it has a config.pbtxt`);
  const lock = lockState(state, url);
  if ('heldBy' in lock) {
    const { pid, url: theirs } = lock.heldBy;
    throw new StartProblem(`a stack already runs on ${state}: ${theirs} (process ${pid})`);
  }
  const ending = new AbortController();
  const running: Supervised[] = [];
  const stop = stopOnce(running, lock, ending);
  try {
    if (!(await isFree(port))) {
      throw new StartProblem(`port ${port} is in use by another program: choose one with --port N`);
    }
    const pools = options.pools ?? usualPools;
    const identity = await makeIdentity(state, [...pools]);
    const portNames = portNamesOf(pools);
    const numbers = await choosePorts(portNames.length);
    const ports: Ports = Object.fromEntries(portNames.map((name, index) => [name, numbers[index] as number]));
    const stopped = AbortSignal.any([ending.signal, ...(options.signal ? [options.signal] : [])]);
    const plan = (triton?: Installed) => {
      const { open, collector } = options;
      const parts = planParts({ state, edgePort: port, open, ports, identity, pools, triton, collector }).map((part) =>
        withSettings(withLimits(part, options.limits), options.agentSettings),
      );
      return choose(models === undefined ? parts : parts.map((part) => onModels(part, models)), options.parts);
    };
    if (natural && models !== undefined)
      await Promise.race([aborted(stopped), ensureWhisper(models, options.onProgress)]);
    const needsTriton = options.engine === 'triton' && plan().some(({ name }) => name.startsWith('engine-'));
    const onProgress = options.onProgress ?? (() => {});
    const triton = needsTriton ? await Promise.race([aborted(stopped), ensureTriton(stopped, onProgress)]) : undefined;
    const present = options.poolsInTurn ? inTurn(plan(triton), pools) : plan(triton);
    const started = startParts(present, { running, lock, state, onLine: options.onLine, ending: ending.signal });
    await Promise.race([
      aborted(stopped),
      waitForParts(
        present.filter((part) => !isLater(part, pools) || !options.poolsInTurn),
        started,
        (parts) => waitForClients(parts, url, identity.token, stopped),
      ),
    ]);
    return describe(running, {
      url,
      identity,
      pools: pools.filter((pool) => present.some(({ name }) => name === `agent-${pool.name}`)),
      engine: options.engine ?? 'embedded',
      open: options.open ?? false,
      ports,
      stop,
      readyMs: performance.now() - startedAt,
    });
  } catch (error) {
    await stop();
    throw error;
  }
}

const hasModels = (folder: string): boolean =>
  existsSync(folder) && readdirSync(folder).some((name) => existsSync(path.join(folder, name, 'config.pbtxt')));

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = () => reject(new StartProblem('stopped while starting'));
    if (signal.aborted) give();
    signal.addEventListener('abort', give, { once: true });
  });
}

async function waitForClients(present: Part[], url: string, token: string, signal: AbortSignal): Promise<void> {
  const names = present.map(({ name }) => name);
  const joining = names.filter((name) => name.startsWith('agent-')).map((name) => name.slice('agent-'.length));
  if (names.includes('edge')) await waitUntilServing(url, token, joining, signal);
}

interface Starting {
  /** Receives each started part. */
  readonly running: Supervised[];
  readonly lock: StateLock;
  readonly state: string;
  readonly onLine: StackTerminal['line'] | undefined;
  readonly ending: AbortSignal;
}

/** Starts every part once its dependencies are ready; returns what each waits for. */
function startParts(
  parts: Part[],
  { running, lock, state, onLine, ending }: Starting,
): ReadonlyMap<PartName, Promise<void>> {
  const started = new Map<PartName, Promise<void>>();
  const begin = async (part: Part): Promise<void> => {
    await Promise.all(part.after.map((name) => started.get(name)));
    // A dependency may have become ready just before the stop.
    if (ending.aborted) return;
    const log = openLog(path.join(state, 'logs'), part.name, (text, source) => onLine?.(part.name, text, source));
    const supervised = supervise(part, log, () => {
      // Every new process is noted at once, so that a later start can clean up if this process is killed.
      lock.note(running.map((one) => one.pid()).filter((pid) => pid !== undefined));
    });
    running.push(supervised);
    supervised.begin();
    await supervised.started;
  };
  for (const part of parts) started.set(part.name, begin(part));
  return started;
}

/**
 * Waits for `parts` and then for `join`. With an edge the agents' places in its roster count: an agent joins with its
 * first model, and is ready with the last. Rejects when any started part gives up.
 */
async function waitForParts(
  parts: Part[],
  started: ReadonlyMap<PartName, Promise<void>>,
  join: (parts: Part[]) => Promise<void>,
): Promise<void> {
  const failed = Promise.all(started.values()).then(() => new Promise<never>(() => {}));
  const awaited = parts.filter(({ name }) => !started.has('edge') || !name.startsWith('agent-'));
  await Promise.race([failed, Promise.all(awaited.map(({ name }) => started.get(name))).then(() => join(parts))]);
}

function stopOnce(running: Supervised[], lock: StateLock, ending: AbortController): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  const stopAll = async () => {
    ending.abort();
    const turns = [...new Set(running.map((one) => one.part.stopTurn))].sort((a, b) => a - b);
    for (const turn of turns) {
      await Promise.all(running.filter((one) => one.part.stopTurn === turn).map((one) => one.stop()));
    }
    lock.release();
  };
  return () => {
    stopped ??= stopAll();
    return stopped;
  };
}

function choose(parts: Part[], names: PartName[] | undefined): Part[] {
  const unknown = names?.filter((name) => !parts.some((part) => part.name === name)) ?? [];
  if (unknown.length > 0) throw new StartProblem(`there is no part ${unknown.join(', ')}`);
  return names === undefined ? parts : parts.filter((part) => names.includes(part.name));
}

type Facts = {
  url: string;
  identity: Identity;
  /** Pools with an agent, those that start later included. */
  pools: readonly Pool[];
  engine: EngineName;
  open: boolean;
  ports: Ports;
  stop: () => Promise<void>;
  readyMs: number;
};

function describe(running: Supervised[], facts: Facts): Stack {
  const find = (name: PartName) => running.find((one) => one.part.name === name);
  return {
    url: facts.url,
    token: facts.identity.token,
    tokenFile: facts.identity.tokenFile,
    parts: running.map((one) => one.part.name),
    engine: facts.engine,
    open: facts.open,
    pools: [...facts.pools],
    readyMs: Math.round(facts.readyMs),
    ports: facts.ports,
    pid: (name) => find(name)?.pid(),
    isReady: (name) => find(name)?.isReady() ?? false,
    kill: (name, signal) => find(name)?.kill(signal),
    stop: facts.stop,
  };
}
