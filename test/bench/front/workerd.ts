// A Worker on bare workerd, without the wrappers of a development server, which cost more than what is measured.
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { type Bundle, bundleWorker } from '../../../infra/local/bundle.ts';
import type { WorkerConfig } from '../../../infra/local/worker-config.ts';

export interface WorkerPlan {
  readonly folder: string;
  readonly port: number;
  readonly config: WorkerConfig;
  readonly bindings: Readonly<Record<string, string>>;
}

/** The binary of the platform's package; `workerd` itself is a launcher that would be a second process. */
export function findWorkerd(): string {
  const resolve = createRequire(createRequire(import.meta.url).resolve('workerd/package.json'));
  return resolve.resolve(`@cloudflare/workerd-linux-${process.arch === 'arm64' ? 'arm64' : '64'}/bin/workerd`);
}

/** The entry of a module that exports its `worker` by name. */
export function entryOf(module: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const entry = path.join(folder, 'entry.js');
  writeFileSync(entry, `export { worker as default } from ${JSON.stringify(module)};\n`);
  return entry;
}

/** Bundles the Worker and gives the command that serves it. */
export async function planWorker(entry: string, { folder, port, config, bindings }: WorkerPlan): Promise<string[]> {
  const bundle = await bundleWorker(entry, folder);
  const file = path.join(folder, 'config.capnp');
  mkdirSync(path.join(folder, 'disk'), { recursive: true });
  writeFileSync(file, capnp(bundle, folder, port, config, bindings));
  return [findWorkerd(), 'serve', file];
}

/** A text of Cap'n Proto is written as one of JSON. */
const quote = (text: string) => JSON.stringify(text);

function capnp(
  { script, wasm }: Bundle,
  folder: string,
  port: number,
  config: WorkerConfig,
  bindings: WorkerPlan['bindings'],
): string {
  const objects = config.durable_objects.bindings;
  const modules = [
    `(name = "worker.js", esModule = embed ${quote(path.relative(folder, script))})`,
    ...wasm.map((name) => `(name = ${quote(name)}, wasm = embed ${quote(name)})`),
  ];
  const bound = [
    ...Object.entries(bindings).map(([name, text]) => `(name = ${quote(name)}, text = ${quote(text)})`),
    ...objects.map(({ name, class_name }) => `(name = ${quote(name)}, durableObjectNamespace = ${quote(class_name)})`),
  ];
  const namespaces = objects.map(
    ({ class_name }) => `(className = ${quote(class_name)}, uniqueKey = ${quote(class_name)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "net", network = (allow = ["private", "public", "local"])),
    (name = "disk", disk = (path = ${quote(path.join(folder, 'disk'))}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [${modules.join(', ')}],
  compatibilityDate = ${quote(config.compatibility_date)},
  compatibilityFlags = [${config.compatibility_flags.map(quote).join(', ')}],
  bindings = [${bound.join(', ')}],
  ${objects.length > 0 ? `durableObjectNamespaces = [${namespaces.join(', ')}],\n  durableObjectStorage = (localDisk = "disk"),` : ''}
  globalOutbound = "net",
);
`;
}
