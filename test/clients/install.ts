import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findPython } from '../../infra/pool/triton/find-python.ts';
import { run } from '../../infra/pool/triton/run.ts';

/** Folder of the environments, retained between runs. */
export const folder = path.resolve(
  process.env.AURICLE_CLIENTS ?? path.join(import.meta.dirname, '../../.auricle/clients'),
);

/** Virtual environments, each made of the list beside this file: imports that prove it, and its size. */
const environments = {
  clients: { imports: 'tritonclient.http, openai, deepgram, websockets', size: '150 MB' },
  schemathesis: { imports: 'schemathesis', size: '90 MB' },
  livekit: { imports: 'livekit.plugins.openai, livekit.plugins.deepgram', size: '420 MB' },
} as const;
export type Environment = keyof typeof environments;

/** LiveKit is large, so it is installed on request only. */
export const wantsLivekit = process.env.AURICLE_LIVEKIT === '1';

export const interpreterOf = (name: Environment): string => path.join(folder, name, 'bin/python');

/** Environment of the interpreters: packages are compiled once, outside the source tree. */
export const bytecode = { PYTHONDONTWRITEBYTECODE: '', PYTHONPYCACHEPREFIX: path.join(folder, 'bytecode') };

/**
 * Runs before all files, in the process that may reach a package index. Reports in one line what is missing.
 */
export async function setup(): Promise<void> {
  const wanted: Environment[] = ['clients', 'schemathesis', ...(wantsLivekit ? (['livekit'] as const) : [])];
  await Promise.all(wanted.map(install));
}

/** Only listed packages, only with their hashes, never built here. */
const pinned = ['--no-deps', '--require-hashes', '--only-binary', ':all:'];

/** Installs an environment if it is missing. */
async function install(name: Environment): Promise<void> {
  const { imports, size } = environments[name];
  const list = path.join(import.meta.dirname, `${name}.txt`);
  const wanted = await readFile(list, 'utf8');
  const stamp = path.join(folder, `${name}.installed`);
  const known = await readFile(stamp, 'utf8').catch(() => '');
  if (known === wanted && existsSync(interpreterOf(name)) && (await imported(name, imports)).ok) return;

  const python = await findPython();
  if ('problem' in python) throw new Error(`${name}: ${python.problem}`);
  const making = path.join(folder, `${name}.making-${process.pid}`);
  await mkdir(folder, { recursive: true });
  await rm(making, { recursive: true, force: true });
  const made = await run(python.executable, ['-m', 'venv', '--without-pip', making]);
  if (!made.ok) throw new Error(`${name}: no virtual environment can be made: ${made.lastLine}`);
  console.log(`${name}: installing what ${name}.txt names (${size})`);
  const target = path.join(making, 'lib', `python${python.version}`, 'site-packages');
  const pip = ['-m', 'pip', '--disable-pip-version-check', '--no-input', '-q', 'install', ...pinned];
  const environment = { ...process.env, PIP_ROOT_USER_ACTION: 'ignore' };
  const got = await run(python.executable, [...pip, '--no-compile', '--target', target, '-r', list], environment);
  if (!got.ok) throw new Error(`${name}: pip cannot install it (is the package index reachable?): ${got.lastLine}`);
  await rm(path.join(folder, name), { recursive: true, force: true });
  await rename(making, path.join(folder, name));
  const works = await imported(name, imports);
  if (!works.ok) throw new Error(`${name}: it does not work here: ${works.lastLine}`);
  await writeFile(stamp, wanted);
}

const imported = (name: Environment, imports: string) =>
  run(interpreterOf(name), ['-c', `import ${imports}`], { ...process.env, ...bytecode });
