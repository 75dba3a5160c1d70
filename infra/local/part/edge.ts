// The edge: workerd below this process, running the bundle of edge/worker.ts on the one fixed port of the stack.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare';
import { bundleWorker } from '../bundle.ts';
import { readWorkerConfig } from '../worker-config.ts';
import { holdLifeline } from './lifeline.ts';

/** How often this process looks whether workerd still listens, in milliseconds. */
const LOOK_MS = 500;
/** Miniflare restarts a crashed workerd within one or two looks; after this many silent ones it has not managed. */
const SILENT_LOOKS_MAX = 6;

holdLifeline();
const folder = process.env.DATA ?? '';
const port = Number(process.env.PORT);
const entry = process.env.ENTRY ?? '';
const bindings: Record<string, string> = JSON.parse(process.env.BINDINGS ?? '{}');
for (const [name, file] of Object.entries<string>(JSON.parse(process.env.SECRET_FILES ?? '{}'))) {
  bindings[name] = readFileSync(file, 'utf8').trim();
}

const [bundle, config] = await Promise.all([
  bundleWorker(entry, path.join(folder, 'bundle')),
  readWorkerConfig(path.join(path.dirname(entry), 'wrangler.jsonc')),
]);

const durableObjects: Record<string, { className: string; useSQLite: true }> = {};
for (const { name, class_name } of config.durable_objects.bindings) {
  durableObjects[name] = { className: class_name, useSQLite: true };
}

const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    log: new Log(LogLevel.WARN),
    host: '127.0.0.1',
    port,
    cf: false,
    modulesRoot: bundle.folder,
    modules: [
      { type: 'ESModule', path: bundle.script },
      ...bundle.wasm.map((name) => ({ type: 'CompiledWasm' as const, path: path.join(bundle.folder, name) })),
    ],
    compatibilityDate: config.compatibility_date,
    compatibilityFlags: config.compatibility_flags,
    bindings,
    durableObjects,
    resourcePersistencePath: path.join(folder, 'durable-objects'),
  }),
);

await miniflare.ready;
// Miniflare ends the process at once on a signal; the order of leaving is ours: workerd first, then this process.
process.removeAllListeners('SIGTERM');
let stopping = false;
let silentLooks = 0;
process.on('SIGTERM', () => {
  stopping = true;
  void miniflare.dispose().finally(() => process.exit(0));
});
process.send?.('ready');
setInterval(watch, LOOK_MS);

/** Dies when workerd is gone for good, so that the supervisor starts both again. */
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
