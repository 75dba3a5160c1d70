// Builds of one revision for several targets (M7). All files are under its one signature; an agent takes those of its own
// target:
//
//   PART/builds/TARGET/PATH     stands in the place of PART/PATH
//   PART/configs/TARGET.pbtxt   stands in the place of PART/config.pbtxt, as `auricle model deploy` writes it
//
// A part with builds, but none for the target, is refused; one without any serves every target.
import { no, ok, type Result } from '../../../../shared/result.ts';

export interface BuildFile {
  /** Path in the model repository, as it is signed. */
  readonly name: string;
  /** Path at the engine, where it is another. */
  readonly as?: string;
}

/** Returns the path of a file at the engine. */
export const placedName = ({ name, as }: BuildFile): string => as ?? name;

interface BuildPath {
  readonly part: string;
  readonly target: string;
  readonly as: string;
}

function parseBuildPath(name: string): BuildPath | undefined {
  const [, part = '', target = '', file = ''] = /^([^/]+)\/builds\/([^/]+)\/(.+)$/.exec(name) ?? [];
  if (file !== '') return { part, target, as: `${part}/${file}` };
  const [, of = '', named = ''] = /^([^/]+)\/configs\/([^/]+)\.pbtxt$/.exec(name) ?? [];
  return named === '' ? undefined : { part: of, target: named, as: `${of}/config.pbtxt` };
}

/** Returns the files of a revision that an agent of `target` takes, and the others. The refusal names the lacking build. */
export function selectBuild<F extends BuildFile>(
  files: readonly F[],
  target: string,
): Result<{ readonly files: readonly (F & BuildFile)[]; readonly others: readonly F[] }, string> {
  const builds = new Map<string, Set<string>>();
  for (const { name } of files) {
    const path = parseBuildPath(name);
    if (!path || !name.startsWith(`${path.part}/builds/`)) continue;
    builds.set(path.part, (builds.get(path.part) ?? new Set()).add(path.target));
  }
  const lacking = [...builds].find(([, targets]) => !targets.has(target));
  if (lacking) return no(`${lacking[0]} has no build for ${target}, only for ${[...lacking[1]].sort().join(', ')}`);
  const own = files.flatMap((file) => {
    const path = parseBuildPath(file.name);
    return path?.target === target ? [{ ...file, as: path.as }] : [];
  });
  const replaced = new Set(own.map(placedName));
  const shared = files.filter(({ name }) => !parseBuildPath(name) && !replaced.has(name));
  const taken = new Set([...own, ...shared].map(({ name }) => name));
  return ok({ files: [...own, ...shared], others: files.filter(({ name }) => !taken.has(name)) });
}
