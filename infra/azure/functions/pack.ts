// Makes the package root of the functions app: a folder that `func start` runs and that is deployed as it is.
//
//   node infra/local/node.cjs infra/azure/functions/pack.ts [FOLDER]     default: dist/functions
//
// Everything is one file, but for the functions library and what it needs: the platform's worker puts a module of its own
// below that library when it asks for it, and the library must be the only copy of itself.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { writeVerifier } from '../../verify/build.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const ENTRY = 'triggers.mjs';
/** Packages that are shipped as they were installed. */
const SHIPPED = ['@azure/functions', '@azure/functions-extensions-base', 'cookie'] as const;
/** CommonJS packages in an ES module ask for built-in modules by `require`. */
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

export async function packFunctions(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: [path.join(ROOT, 'functions/triggers.ts')],
    outfile: path.join(folder, ENTRY),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    sourcemap: 'linked',
    sourcesContent: false,
    banner: { js: BANNER },
    external: [...SHIPPED],
    logLevel: 'warning',
  });
  cpSync(path.join(ROOT, 'functions/host.json'), path.join(folder, 'host.json'));
  await writeVerifier(path.join(folder, 'verify'));
  const dependencies: Record<string, string> = {};
  for (const name of SHIPPED) {
    const from = path.join(ROOT, 'node_modules', name);
    cpSync(from, path.join(folder, 'node_modules', name), {
      recursive: true,
      filter: (file) => !file.startsWith(path.join(from, 'src')),
    });
    dependencies[name] = (
      JSON.parse(readFileSync(path.join(from, 'package.json'), 'utf8')) as { version: string }
    ).version;
  }
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const manifest = { name: 'auricle-functions', version, private: true, type: 'module', main: ENTRY, dependencies };
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folder = path.resolve(process.argv[2] ?? path.join(ROOT, 'dist/functions'));
  await packFunctions(folder);
  console.log(folder);
}
