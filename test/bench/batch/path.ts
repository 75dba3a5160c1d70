// The whole path of an upload in processes of its own, with a double in the place of the engine; on request with counters
// before its stores.
import path from 'node:path';
import { makeIdentity } from '../../../infra/local/identity/make.ts';
import { openLog } from '../../../infra/local/logs.ts';
import type { Part } from '../../../infra/local/part.ts';
import { inPlace, planParts, portNamesOf, storageConnection } from '../../../infra/local/plan.ts';
import { pools } from '../../../infra/local/pools.ts';
import { choosePorts, HOST } from '../../../infra/local/ports.ts';
import { waitUntilServing } from '../../../infra/local/serving.ts';
import { type Supervised, supervise } from '../../../infra/local/supervise.ts';
import { type Counter, count } from './counter.ts';

export interface Path {
  readonly url: string;
  readonly token: string;
  readonly counters: readonly Counter[];
  /** Connection string of the storage emulator. */
  readonly storage: string;
  pid(part: string): number;
  /** Stops a part, waits for `work`, and starts the part again. */
  without(part: string, work: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

const [pool] = pools;
const AGENT = `agent-${pool.name}`;

export { AGENT };

/** Reads and writes of blobs are charged differently; deleting is free. Lists are how the local host finds events. */
const nameBlob = (method: string, target: string) => {
  if (target.includes('comp=list') || target.includes('restype=container')) return 'blob list';
  return method === 'PUT' ? 'blob write' : method === 'DELETE' ? 'blob delete' : 'blob read';
};

export async function startPath(state: string, counted: boolean, delayMs: number): Promise<Path> {
  const identity = await makeIdentity(state, [...pools]);
  const portNames = portNamesOf(pools);
  const numbers = await choosePorts(portNames.length + 1);
  const ports = Object.fromEntries(portNames.map((name, i) => [name, numbers[i] as number]));
  const port = numbers.at(-1) as number;
  const counters: Counter[] = [];
  /** Replacements of parts' addresses by those of the counters. */
  const replaced = new Map<string, string>();
  if (counted) {
    const names: Record<string, (method: string, target: string) => string> = {
      blob: nameBlob,
      queue: () => 'queue',
      table: () => 'table',
      sqs: () => 'sqs',
    };
    for (const [name, nameOf] of Object.entries(names)) {
      const counter = await count(ports[name] as number, nameOf);
      counters.push(counter);
      replaced.set(`:${ports[name]}`, `:${counter.port}`);
    }
  }
  const told = (text: string) => [...replaced].reduce((now, [from, to]) => now.replaceAll(from, to), text);
  const stores = new Set(['blob', 'sqs']);
  const wanted = new Set([...stores, 'release', 'functions', `engine-${pool.name}`, AGENT, 'edge']);
  const parts = planParts({ state, edgePort: port, ports, identity, pools })
    .filter(({ name }) => wanted.has(name))
    // The engine double loads nothing on request.
    .map((part) => (part.name === AGENT ? inPlace(part) : part))
    .map((part): Part => {
      const env = Object.fromEntries(
        Object.entries(part.env).map(([name, value]) => [name, stores.has(part.name) ? value : told(value)]),
      );
      if (part.name !== `engine-${pool.name}`) return { ...part, env };
      const entry = 'test/bench/batch/engine-part.ts';
      return { ...part, entry, env: { ...env, DELAY_MS: String(delayMs) }, ready: 'message' };
    });
  const running = new Map<string, Supervised>();
  const started = new Map<string, Promise<void>>();
  const begin = async (part: Part) => {
    await Promise.all(part.after.map((name) => started.get(name)));
    const supervised = supervise(part, openLog(path.join(state, 'logs'), part.name, undefined), () => {});
    running.set(part.name, supervised);
    supervised.begin();
    await supervised.started;
  };
  for (const part of parts) started.set(part.name, begin(part));
  await Promise.all(started.values());
  const url = `http://${HOST}:${port}`;
  await waitUntilServing(url, identity.token, [pool.name], AbortSignal.timeout(60_000));
  return {
    url,
    token: identity.token,
    counters,
    storage: storageConnection(ports),
    async without(name, work) {
      const part = parts.find((one) => one.name === name);
      if (!part) throw new Error(`no ${name}`);
      await running.get(name)?.stop();
      await work();
      await begin(part);
    },
    pid(part) {
      const pid = running.get(part)?.pid();
      if (pid === undefined) throw new Error(`no ${part}`);
      return pid;
    },
    async stop() {
      for (const turn of [1, 2, 3, 4]) {
        await Promise.all([...running.values()].filter(({ part }) => part.stopTurn === turn).map((one) => one.stop()));
      }
      await Promise.all(counters.map((counter) => counter.stop()));
    },
  };
}
