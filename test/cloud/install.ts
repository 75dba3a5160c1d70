// Installs the parser of Bicep, once and before all files: a grammar and a runtime in WebAssembly, from npm.
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { run } from '../../infra/pool/triton/run.ts';

/** Folder that survives runs. */
const folder = path.resolve(process.env.AURICLE_CLOUD ?? path.join(import.meta.dirname, '../../.auricle/cloud'));
const PACKAGES = ['tree-sitter-bicep@1.1.0', 'web-tree-sitter@0.25.10'];

export const runtime = path.join(folder, 'node_modules/web-tree-sitter/tree-sitter.js');
export const grammar = path.join(folder, 'node_modules/tree-sitter-bicep/tree-sitter-bicep.wasm');

export async function setup(): Promise<void> {
  if (existsSync(runtime) && existsSync(grammar)) return;
  await mkdir(folder, { recursive: true });
  // The grammar is read as WebAssembly: its native build is not wanted.
  const options = ['--prefix', folder, '--ignore-scripts', '--no-save', '--no-audit', '--no-fund'];
  const got = await run('npm', ['install', ...options, ...PACKAGES]);
  if (!got.ok) throw new Error(`test:cloud cannot run: the parser of Bicep is not installed: ${got.lastLine}`);
}
