import { randomBytes } from 'node:crypto';
import { cp, lstat, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ok } from '../../../../shared/result.ts';
import { type Made, problem } from '../problem.ts';

/** Beside a model's configuration: what this tool wrote there, so that it never takes away what somebody else did. */
export const MARK = 'auricle-deployed.json';

const mark = z.looseObject({ files: z.array(z.string()) });

const isThere = (file: string): Promise<boolean> =>
  lstat(file).then(
    () => true,
    () => false,
  );

/** Files below a folder, relative. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();
}

/** What this tool wrote into a folder; undefined when it is not its folder. */
async function ownFiles(folder: string): Promise<readonly string[] | undefined> {
  try {
    return mark.parse(JSON.parse(await readFile(path.join(folder, MARK), 'utf8'))).files;
  } catch {
    return undefined;
  }
}

/** Whether the models may go into the repository at all: asked before anything is unpacked. */
export async function mayPlace(repository: string, names: readonly string[], force: boolean): Promise<Made<undefined>> {
  for (const name of names) {
    const folder = path.join(repository, name);
    if (!(await isThere(folder))) continue;
    if (!force) return problem('exists', `${folder} exists; -f deploys over it`);
    if ((await ownFiles(folder)) === undefined) {
      return problem(
        'exists',
        `${folder} was not deployed by this tool, so that -f does not touch it: remove it, or use another --name`,
      );
    }
  }
  return ok(undefined);
}

/**
 * Moves finished model folders into the repository, all or none. A folder of an earlier deployment is replaced; files in it
 * that this tool did not write come along. `staged` has one folder for each name, in the same file system.
 */
export async function placeModels(
  repository: string,
  staged: string,
  names: readonly string[],
  force: boolean,
): Promise<Made<undefined>> {
  const allowed = await mayPlace(repository, names, force);
  if (!allowed.ok) return allowed;
  await mkdir(repository, { recursive: true });
  const aside = path.join(staged, `.before-${randomBytes(4).toString('hex')}`);
  await mkdir(aside);
  const done: { name: string; before: boolean }[] = [];
  try {
    for (const name of names) {
      const [from, to] = [path.join(staged, name), path.join(repository, name)];
      const before = await isThere(to);
      if (before) {
        await keepForeign(to, from);
        await rename(to, path.join(aside, name));
      }
      done.push({ name, before });
      await rename(from, to);
    }
    return ok(undefined);
  } catch (error) {
    for (const { name, before } of done.reverse()) {
      await rm(path.join(repository, name), { recursive: true, force: true });
      if (before) await rename(path.join(aside, name), path.join(repository, name));
    }
    throw error;
  }
}

async function keepForeign(old: string, next: string): Promise<void> {
  const own = new Set(await ownFiles(old));
  const written = new Set(await filesIn(next));
  for (const file of await filesIn(old)) {
    if (own.has(file) || written.has(file)) continue;
    await cp(path.join(old, file), path.join(next, file));
  }
}
