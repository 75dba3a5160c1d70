// Makes what auditors verify with, out of the same source as everything else: verify.mjs, verify.html and VERIFY.md, as
// they go into every export.
//
//   node infra/local/node.cjs infra/verify/build.ts FOLDER
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { type BuildOptions, build } from 'esbuild';

const HERE = import.meta.dirname;
/** Placeholder of the script in the page. */
const PLACE = '/* the verifier */';

const both: BuildOptions = {
  bundle: true,
  write: false,
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  logLevel: 'warning',
};

async function bundle(entry: string, options: BuildOptions): Promise<string> {
  const made = await build({
    ...both,
    ...options,
    entryPoints: [path.join(HERE, entry)],
    absWorkingDir: path.join(HERE, '../..'),
  });
  const [file] = made.outputFiles ?? [];
  if (!file) throw new Error(`${entry} was not built`);
  return file.text;
}

const START =
  '#!/usr/bin/env node\n// Verifies an audit export: node verify.mjs --help. One file, no dependencies, Node 20 or newer.';

export async function buildVerifier(): Promise<Map<string, string>> {
  const script = await bundle('verify-folder.ts', { platform: 'node', format: 'esm', banner: { js: START } });
  const page = await bundle('page.ts', { platform: 'browser', format: 'iife' });
  const html = readFileSync(path.join(HERE, 'page.html'), 'utf8');
  const [before, after] = html.split(PLACE);
  if (before === undefined || after === undefined) throw new Error('the page has no place for its script');
  // `</script` inside the script must not end it.
  const safe = page.replaceAll('</script', '<\\/script');
  return new Map([
    ['VERIFY.md', readFileSync(path.join(HERE, 'VERIFY.md'), 'utf8')],
    ['verify.html', `${before}${safe}${after}`],
    ['verify.mjs', script],
  ]);
}

export async function writeVerifier(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of await buildVerifier()) writeFileSync(path.join(folder, name), text);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await writeVerifier(path.resolve(process.argv[2] ?? 'dist/verify'));
}
