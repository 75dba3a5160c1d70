// The gateways in front of the upstream.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { ROOT } from '../../../infra/local/root.ts';
import { readWorkerConfig } from '../../../infra/local/worker-config.ts';
import type { Identity } from './identity.ts';
import { installPortkey, planPortkeyOnNode } from './portkey.ts';
import { freePort, listens, startOn } from './processes.ts';
import { entryOf, planWorker } from './workerd.ts';

/** A second of 16 kHz 16-bit mono, a command to a voice assistant. */
export const SMALL = 32_000;
/** Ten seconds of it. */
export const MEDIUM = 320_000;
/** Five minutes of it. */
export const LARGE = 10_000_000;

export interface System {
  readonly name: string;
  readonly does: string;
  readonly url: string;
  readonly pid: number;
}

/** Name of our own edge. */
export const EDGE = 'auricle';

export interface Place {
  readonly folder: string;
  readonly upstreamPort: number;
  readonly core: string;
  readonly identity: Identity;
}

export const config = readWorkerConfig(path.join(ROOT, 'edge/wrangler.jsonc'));
const bare = { ...config, durable_objects: { bindings: [] } };

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
  const portkey = path.join(ROOT, '.auricle/bench/portkey');
  installPortkey(portkey);
  const onNode = await start((port) => planPortkeyOnNode(portkey, port));
  return [
    { name: EDGE, does: 'token, quota, record, route, sealed both ways', ...edge },
    { name: 'hono proxy', does: 'passes the body through; nothing else', ...(await worker('hono')) },
    { name: 'floor', does: 'reads the body, seals it, opens the answer; nothing else', ...(await worker('floor')) },
    { name: 'Portkey on Node', does: 'parses and rebuilds the form; no authentication, no encryption', ...onNode },
  ];
}
