import { randomBytes } from 'node:crypto';
import { link, lstat, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../shared/result.ts';
import { type BuildResult, problem } from './problem.ts';

const exists = (file: string) =>
  lstat(file).then(
    (found) => found,
    () => undefined,
  );

/** Makes a folder level by level: a recursive mkdir of Node never returns where no folder can be made. */
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
 * Writes a file atomically. `write` fills a temporary file beside the target, which replaces it on success; a
 * failure leaves nothing. Without `force` nothing is overwritten, even if it appeared meanwhile.
 */
export async function writeWhole<T>(
  target: string,
  force: boolean,
  write: (temporary: string) => Promise<BuildResult<T>>,
): Promise<BuildResult<T>> {
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
