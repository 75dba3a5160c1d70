// Everything that stands in front of the upstream, and what each does for its money.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { ROOT } from '../../../infra/local/root.ts';
import { readWorkerConfig } from '../../../infra/local/worker-config.ts';
import type { Identity } from './identity.ts';
import { planNginx } from './nginx.ts';
import { installPortkey, planPortkeyOnNode, writePortkeyWorker } from './portkey.ts';
import { freePort, listens, startOn } from './processes.ts';
import { entryOf, planWorker } from './workerd.ts';

export const SMALL = 1_024;
/** 10 s of 16 kHz 16-bit mono. */
export const MEDIUM = 320_000;
/** Five minutes of it. */
export const LARGE = 10_000_000;

export interface System {
  readonly name: string;
  readonly does: string;
  readonly sizes: readonly number[];
  /** Audit mode of the tenants in its runs; only the edge has one. */
  readonly audit?: 'buffered' | 'strict';
  readonly url: string;
  readonly pid: number;
}

export interface Place {
  readonly folder: string;
  readonly upstreamPort: number;
  readonly core: string;
  readonly identity: Identity;
}

const all = [SMALL, MEDIUM, LARGE];
export const config = readWorkerConfig(path.join(ROOT, 'edge/wrangler.jsonc'));
const bare = { ...config, durable_objects: { bindings: [] } };
const PORTKEY_DOES = 'form parsed and rebuilt; no authentication, no encryption, no record';

export function has(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export async function startSystems(place: Place): Promise<System[]> {
  const { folder, upstreamPort, core, identity } = place;
  const upstream = `http://127.0.0.1:${upstreamPort}`;
  const start = async (plan: (port: number) => string[] | Promise<string[]>) => {
    const port = await freePort();
    const child = startOn(core, await plan(port), { cwd: folder });
    await listens(port, child);
    return { url: `http://127.0.0.1:${port}`, pid: child.pid };
  };
  const worker = (name: string) => {
    const own = path.join(folder, name);
    const module = path.join(import.meta.dirname, 'workers', `${name}.ts`);
    return start((port) =>
      planWorker(entryOf(module, own), { folder: own, port, config: bare, bindings: { UPSTREAM: upstream } }),
    );
  };
  const edgeBindings = identity.edgeBindings;
  const edge = await start((port) =>
    planWorker(path.join(ROOT, 'edge/worker.ts'), {
      folder: path.join(folder, 'edge'),
      port,
      config,
      bindings: edgeBindings,
    }),
  );
  const systems: System[] = [
    {
      name: 'auricle',
      does: 'token, allowance, record, route, sealed both ways',
      sizes: all,
      audit: 'buffered',
      ...edge,
    },
    {
      name: 'auricle, strict record',
      does: 'the same, and each answer waits until its end is on disk',
      sizes: [SMALL, MEDIUM],
      audit: 'strict',
      ...edge,
    },
    { name: 'hono proxy', does: 'passes the body through; nothing else', sizes: all, ...(await worker('hono')) },
    {
      name: 'pump',
      does: 'our pump and framing without encryption; nothing else',
      sizes: [LARGE],
      ...(await worker('pump')),
    },
    {
      name: 'floor',
      does: 'token looked up, sealed and opened in one call each; nothing else',
      sizes: [SMALL, MEDIUM],
      ...(await worker('floor')),
    },
    { name: 'empty Worker', does: 'answers by itself', sizes: [SMALL], ...(await worker('empty')) },
  ];
  if (has('nginx')) {
    const nginx = await start((port) => planNginx(path.join(folder, 'nginx'), port, upstreamPort));
    systems.push({ name: 'nginx', does: 'passes the body on; nothing else', sizes: all, ...nginx });
  } else console.warn('nginx is not installed (apt-get install nginx-light): its rows are left out');

  const portkey = path.join(ROOT, '.auricle/bench/portkey');
  installPortkey(portkey);
  const onNode = await start((port) => planPortkeyOnNode(portkey, port));
  const onWorkerd = await start(async (port) =>
    planWorker(await writePortkeyWorker(portkey), {
      folder: path.join(folder, 'portkey'),
      port,
      config: bare,
      bindings: {},
    }),
  );
  systems.push(
    { name: 'Portkey on Node', does: PORTKEY_DOES, sizes: all, ...onNode },
    { name: 'Portkey on workerd', does: PORTKEY_DOES, sizes: all, ...onWorkerd },
  );
  return systems;
}
