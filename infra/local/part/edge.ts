// The edge and the witness: workerd below this process, which runs their bundles. The edge has the one fixed port of
// the stack.
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare';
import { bundleFolder } from '../bundle-entry.ts';
import { ROOT } from '../root.ts';
import { readWorkerConfig } from '../worker-config.ts';
import { holdLifeline } from './lifeline.ts';

/** Interval of checks that workerd listens, ms. */
const LOOK_MS = 500;
/** Silent checks after which workerd counts as dead: Miniflare restarts a crashed one within one or two. */
const SILENT_LOOKS_MAX = 6;

/** A Worker of this process: the edge first, with the port of the part; others listen on their own. */
export interface LocalWorker {
  readonly name: string;
  /** Folder of worker.ts and wrangler.jsonc, relative to the repository. */
  readonly folder: string;
  readonly port: number;
  readonly bindings: Readonly<Record<string, string>>;
  /** Files of secrets, by binding: other programs of the same user can read an environment. */
  readonly secretFiles: Readonly<Record<string, string>>;
}

holdLifeline();
const workers: readonly LocalWorker[] = JSON.parse(process.env.WORKERS ?? '[]');
const port = workers[0]?.port ?? 0;

function workerOptions({ name, folder, bindings, secretFiles, ...worker }: LocalWorker, index: number) {
  const config = readWorkerConfig(path.join(ROOT, folder, 'wrangler.jsonc'));
  const bundle = path.join(bundleFolder(), 'workers', folder);
  const wasm = readdirSync(bundle).filter((file) => file.endsWith('.wasm'));
  const secrets = Object.entries(secretFiles).map(([key, file]) => [key, readFileSync(file, 'utf8').trim()]);
  return {
    // The edge keeps the storage of stacks whose only Worker it was.
    ...(index > 0 && { name, unsafeDirectSockets: [{ host: '127.0.0.1', port: worker.port }] }),
    modulesRoot: bundle,
    modules: [
      { type: 'ESModule' as const, path: path.join(bundle, 'worker.js') },
      ...wasm.map((file) => ({ type: 'CompiledWasm' as const, path: path.join(bundle, file) })),
    ],
    compatibilityDate: config.compatibility_date,
    compatibilityFlags: config.compatibility_flags,
    bindings: { ...bindings, ...Object.fromEntries(secrets) },
    durableObjects: Object.fromEntries(
      config.durable_objects.bindings.map((object) => [
        object.name,
        { className: object.class_name, useSQLite: true as const },
      ]),
    ),
  };
}

const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    log: new Log(LogLevel.WARN),
    host: process.env.LISTEN ?? '127.0.0.1',
    port,
    cf: false,
    resourcePersistencePath: path.join(process.env.DATA ?? '', 'durable-objects'),
    workers: workers.map(workerOptions),
  }),
);

await miniflare.ready;
// Miniflare ends the process at once on a signal; here workerd stops first, then this process.
process.removeAllListeners('SIGTERM');
let stopping = false;
let silentLooks = 0;
process.on('SIGTERM', () => {
  stopping = true;
  void miniflare.dispose().finally(() => process.exit(0));
});
process.send?.('ready');
setInterval(watch, LOOK_MS);

/** Exits when workerd is gone for good, so that the supervisor restarts both. */
function watch(): void {
  const socket = connect({ port, host: '127.0.0.1' }, () => {
    silentLooks = 0;
    socket.destroy();
  });
  socket.on('error', () => {
    silentLooks += 1;
    if (stopping || silentLooks < SILENT_LOOKS_MAX) return;
    console.error('the Workers runtime is gone');
    process.exit(1);
  });
}
