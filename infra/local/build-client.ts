// `npm run build:client`: bundles the client package for browsers of 2022, with its types, as an npm package
// with an example.
//
//   node infra/local/node.cjs infra/local/build-client.ts FOLDER
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { ROOT } from './root.ts';

const CLIENT = path.join(ROOT, 'edge/client');
/** Browsers of the first half of 2022. */
const TARGET = ['chrome100', 'firefox100', 'safari15.4'];
/** Files of which every export is public. */
const PUBLIC = ['contract', 'events', 'microphone', 'stream'];

/** Returns the package as one ES module. */
export async function bundleClient(): Promise<string> {
  const built = await build({
    absWorkingDir: ROOT,
    entryPoints: [path.join(CLIENT, 'auricle.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    target: TARGET,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return built.outputFiles[0]?.text ?? '';
}

/** Returns the declarations of the package as one file without imports. */
export function declareClient(): string {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'auricle-client-'));
  try {
    const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
    const flags = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--rootDir', ROOT];
    execFileSync(process.execPath, [tsc, '-p', CLIENT, ...flags, '--outDir', scratch], { stdio: 'inherit' });
    const read = (name: string) => readFileSync(path.join(scratch, 'edge/client', `${name}.d.ts`), 'utf8');
    // Each statement that names another file is one of these.
    return PUBLIC.map((name) => read(name).replaceAll(/^(import|export) [^;]*? from '[^']*';\n/gm, '')).join('');
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

export async function buildClient(folder: string): Promise<void> {
  const { version, license } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  const entry = { type: 'module', exports: { types: './auricle.d.ts', default: './auricle.js' } };
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'auricle.js'), await bundleClient());
  copyFileSync(path.join(CLIENT, 'example.html'), path.join(folder, 'example.html'));
  writeFileSync(path.join(folder, 'auricle.d.ts'), declareClient());
  writeFileSync(
    path.join(folder, 'package.json'),
    `${JSON.stringify({ name: 'auricle-client', version, license, ...entry }, undefined, 2)}\n`,
  );
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folder = process.argv[2] ?? 'dist/client';
  await buildClient(path.resolve(folder));
  console.log(`${folder}: auricle.js, auricle.d.ts, package.json, example.html`);
}
