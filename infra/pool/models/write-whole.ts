import { randomBytes } from 'node:crypto';
import { link, lstat, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../shared/result.ts';
import { type Made, problem } from './problem.ts';

const exists = (file: string) =>
  lstat(file).then(
    (found) => found,
    () => undefined,
  );

/** With those above it, one by one: asked for all at once, Node never comes back from where nothing can be made. */
async function makeFolder(folder: string): Promise<undefined> {
  const make = () => mkdir(folder).then(() => undefined);
  const given = (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    return undefined;
  };
  const above = path.dirname(folder);
  return make().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' || above === folder) return given(error);
    await makeFolder(above);
    return make().catch(given);
  });
}

/**
 * A file that is there whole or not at all. `write` fills a file beside the target, which becomes the target when it has
 * succeeded; nothing of a failure stays. Without `force` nothing is overwritten, not even what appeared meanwhile.
 */
export async function writeWhole<T>(
  target: string,
  force: boolean,
  write: (temporary: string) => Promise<Made<T>>,
): Promise<Made<T>> {
  const before = await exists(target);
  if (before?.isDirectory()) return problem('exists', `${target} is a folder`);
  if (before && !force) return problem('exists', `${target} exists; -f overwrites it`);
  const folder = path.dirname(path.resolve(target));
  const failed = await makeFolder(folder).catch((error: NodeJS.ErrnoException) => error.code ?? error.message);
  if (failed !== undefined) return problem('unreadable', `the folder ${folder} cannot be made: ${failed}`);
  const temporary = path.join(
    path.dirname(target),
    `.${path.basename(target)}.${randomBytes(6).toString('hex')}.partial`,
  );
  try {
    const made = await write(temporary);
    if (!made.ok) return made;
    if (force) {
      await rename(temporary, target);
      return made;
    }
    // A link fails where a rename would replace.
    const placed = await link(temporary, target).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    return placed ? ok(made.value) : problem('exists', `${target} exists; -f overwrites it`);
  } finally {
    await rm(temporary, { force: true });
  }
}
