// The edge: workerd below this process, running the bundle of edge/worker.ts on the one fixed port of the stack.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare';
import { bundleWorker } from '../bundle.ts';
import { readWorkerConfig } from '../worker-config.ts';
import { holdLifeline } from './lifeline.ts';

/** Interval of checks that workerd listens, ms. */
const LOOK_MS = 500;
/** Silent checks after which workerd counts as dead: Miniflare restarts a crashed one within one or two. */
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
