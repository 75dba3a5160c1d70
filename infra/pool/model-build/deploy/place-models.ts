import { randomBytes } from 'node:crypto';
import { cp, lstat, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ok } from '../../../../shared/result.ts';
import { type BuildResult, problem } from '../problem.ts';

/**
 * File beside a model's configuration that lists what this tool wrote, so that it never removes other files.
 */
export const MARK = 'auricle-deployed.json';

/** `name` is the pipeline's. */
const mark = z.looseObject({ files: z.array(z.string()), name: z.string() });
type Mark = z.infer<typeof mark>;

/** Folders to place, each with the name of its pipeline. */
export type Owners = ReadonlyMap<string, string>;

const isThere = (file: string): Promise<boolean> =>
  lstat(file).then(
    () => true,
    () => false,
  );

/** Files below a folder, relative. */
export async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();
}

/** Reads this tool's mark in a folder; undefined in a folder of another tool. */
async function readMark(folder: string): Promise<Mark | undefined> {
  try {
    return mark.parse(JSON.parse(await readFile(path.join(folder, MARK), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Checks, before anything is unpacked, that the models may enter the repository. */
export async function mayPlace(repository: string, owners: Owners, force: boolean): Promise<BuildResult<undefined>> {
  for (const [name, pipeline] of owners) {
    const folder = path.join(repository, name);
    if (!(await isThere(folder))) continue;
    if (!force) return problem('exists', `${folder} exists; -f deploys over it`);
    const before = await readMark(folder);
    if (before?.name === pipeline) continue;
    const why = before ? `belongs to the pipeline ${before.name}` : 'was not deployed by this tool';
    return problem('exists', `${folder} ${why}, so that -f does not touch it: remove it, or use another --name`);
  }
  return ok(undefined);
}

/**
 * Moves finished model folders into the repository, all or none. A folder of an earlier deployment is
 * replaced; files in it that this tool did not write are kept. `staged` has one folder for each of `owners`,
 * in the same file system.
 */
export async function placeModels(
  repository: string,
  staged: string,
  owners: Owners,
  force: boolean,
): Promise<BuildResult<undefined>> {
  const allowed = await mayPlace(repository, owners, force);
  if (!allowed.ok) return allowed;
  await mkdir(repository, { recursive: true });
  const aside = path.join(staged, `.before-${randomBytes(4).toString('hex')}`);
  await mkdir(aside);
  const done: { name: string; before: boolean }[] = [];
  try {
    for (const name of owners.keys()) {
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
  const own = new Set((await readMark(old))?.files);
  const written = new Set(await filesIn(next));
  for (const file of await filesIn(old)) {
    if (own.has(file) || written.has(file)) continue;
    await cp(path.join(old, file), path.join(next, file));
  }
}
