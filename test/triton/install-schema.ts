import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findPython } from '../../infra/pool/triton/find-python.ts';

const list = path.join(import.meta.dirname, 'schema.txt');
const run = promisify(execFile);

/** The packages of schema.txt in that folder, pinned by their hashes; installed once. */
export async function installSchema(folder: string): Promise<void> {
  const mark = path.join(folder, 'installed.txt');
  const wanted = await readFile(list, 'utf8');
  if (existsSync(mark) && (await readFile(mark, 'utf8')) === wanted) return;
  const python = await findPython();
  if ('problem' in python) throw new Error(python.problem);
  const made = `${folder}.partial`;
  for (const old of [made, folder]) await rm(old, { recursive: true, force: true });
  const pinned = ['--require-hashes', '--no-deps', '--only-binary', ':all:', '--no-compile', '--quiet'];
  await run(python.executable, ['-m', 'pip', 'install', ...pinned, '--target', made, '-r', list]);
  await writeFile(path.join(made, 'installed.txt'), wanted);
  await rename(made, folder);
}
