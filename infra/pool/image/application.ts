import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

/** The repository. */
export const ROOT = path.resolve(import.meta.dirname, '../../..');
/** Files that a process or a thread of agent and engine starts with. */
const ENTRIES = [
  'infra/pool/agent/main.ts',
  'infra/pool/agent/stream/worker.ts',
  'infra/pool/engine/main.ts',
  'infra/pool/engine/run/instance-thread.ts',
];
/** Files that the sources read at run time. */
const ASSETS = ['infra/pool/agent/audio/aac/decoder.wasm', 'LICENSE'];
/** Files of packages that no process reads. */
const UNREAD = /\.(map|d\.[cm]?ts|md)$/;

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string | undefined;
}

/**
 * Copies the sources of agent and engine, and the packages that they import, to `target`. The sources stay as they are:
 * Node reads TypeScript, and a digest of the image can be traced to them. `arch` is Node's name of an architecture.
 */
export async function copyApplication(target: string, arch: string): Promise<NpmPackage[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRIES,
    outdir: 'unused',
    write: false,
    bundle: true,
    metafile: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'warning',
  });
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
  const named = imports.filter(({ external, path: name }) => external && !/^(node:|\.)/.test(name));
  const names = named.map(({ path: name }) => packageOf(name)).filter((name) => existsSync(folderOf(name)));
  for (const file of [...Object.keys(metafile.inputs), ...ASSETS]) {
    cpSync(path.join(ROOT, file), path.join(target, file));
  }
  writeFileSync(path.join(target, 'package.json'), '{"type":"module"}\n');

  const packages = new Map<string, NpmPackage>();
  for (const name of names) copyPackage(folderOf(name), { target, arch, packages });
  return [...packages.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

const folderOf = (name: string): string => path.join(ROOT, 'node_modules', name);
const packageOf = (name: string): string =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');

/** Reports whether a file is ONNX Runtime for another system or architecture. */
function isForeign(file: string, arch: string): boolean {
  const [, system, cpu] = /\/bin\/napi-v\d+\/(\w+)(?:\/(\w+))?/.exec(file) ?? [];
  return system !== undefined && (system !== 'linux' || (cpu !== undefined && cpu !== arch));
}

interface Copying {
  readonly target: string;
  readonly arch: string;
  readonly packages: Map<string, NpmPackage>;
}

/** Copies a package and those that it depends on, each once. */
function copyPackage(folder: string, copying: Copying): void {
  const place = path.relative(ROOT, folder);
  if (copying.packages.has(place)) return;
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const { name, version, license, dependencies = {}, optionalDependencies = {} } = manifest;
  copying.packages.set(place, { name, version, license });
  const target = path.join(copying.target, place);
  mkdirSync(path.dirname(target), { recursive: true });
  const nested = path.join(folder, 'node_modules');
  const filter = (file: string) => !UNREAD.test(file) && !isForeign(file, copying.arch) && file !== nested;
  cpSync(folder, target, { recursive: true, filter });
  for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const found = [path.join(nested, dependency), folderOf(dependency)].find((one) => existsSync(one));
    if (found) copyPackage(found, copying);
  }
}
