import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { plainPath } from '../../models/config/names.ts';
import { type BuildResult, problem } from '../problem.ts';

export interface PlainFile {
  readonly file: string;
  readonly size: number;
}

/**
 * Finds the plain file that `whose` names by a path below `folder`. Refuses absolute paths, `..`, symbolic
 * links on the way, devices, pipes and hard links: each of them can lead to a file elsewhere.
 */
export async function fileBelow(folder: string, written: string, owner: string): Promise<BuildResult<PlainFile>> {
  if (plainPath(written) !== written) {
    return problem('unsafe', `${owner} names ${JSON.stringify(written)}, which leads elsewhere`);
  }
  const parts = written.split('/');
  for (let n = 1; n <= parts.length; n++) {
    const file = path.join(folder, ...parts.slice(0, n));
    const found = await lstat(file).catch(() => undefined);
    if (!found) return problem('unreadable', `${owner} names ${written}, which is not there`);
    const last = n === parts.length;
    if (last ? !found.isFile() : !found.isDirectory()) {
      return problem('unsafe', `${owner} names ${written}, which is no plain file below its folder`);
    }
    if (!last) continue;
    if (found.nlink > 1) {
      return problem('unsafe', `${owner} names ${written}, which has a second name (a hard link): copy it first`);
    }
    return ok({ file, size: found.size });
  }
  return problem('unreadable', `${owner} names no file`);
}

/** Reports whether a folder of a repository is a real one. A link leads elsewhere. */
export const isPlainFolder = (folder: string): Promise<boolean> =>
  lstat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
