import path from 'node:path';
import { isTypeScript, type Tree } from './tree.ts';

export type Import = { from: string; to: string; typeOnly: boolean };

const STATEMENT =
  /(?:^|\n)[ \t]*(?:import|export)\s+(type\s+)?(?:[\w*{][^'"`;]*?\sfrom\s*)?['"]([^'"\n]+)['"]|\bimport\(\s*['"]([^'"\n]+)['"]/g;

/** Imports of the tree's TypeScript files. `to` is a path of the tree for relative ones, else the package as written. */
export function readImports(tree: Tree): Import[] {
  const found: Import[] = [];
  for (const [from, text] of tree) {
    if (!isTypeScript(from)) continue;
    const bare = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\n)[ \t]*\/\/[^\n]*/g, '$1');
    for (const [, typeOnly, written, dynamic] of bare.matchAll(STATEMENT)) {
      const target = written ?? dynamic ?? '';
      const to = target.startsWith('.') ? path.posix.join(path.posix.dirname(from), target) : target;
      found.push({ from, to, typeOnly: typeOnly !== undefined });
    }
  }
  return found;
}

/** Returns circles of files, imports of types included: a reader follows them, too. */
export const findCircles = (imports: Import[]): string[] => findLoops(imports.filter(({ to }) => to.endsWith('.ts')));

/**
 * Returns circles among folders that are next to each other, at every depth. The files of a folder compose the folders
 * in it and hold what those share, as its settings, so an import between a file and a folder beside it is no step.
 */
export const findFolderCircles = (imports: Import[]): string[] =>
  findLoops(imports.filter(({ to }) => to.endsWith('.ts')).flatMap(stepOf));

/** Returns the folders that an import connects: the first ones in which its two paths differ. */
function stepOf({ from, to }: Import): Pick<Import, 'from' | 'to'>[] {
  const [names, others] = [from.split('/'), to.split('/')];
  const at = names.findIndex((name, index) => name !== others[index]);
  const folders = [names, others].map((parts) => parts.slice(0, -1));
  const [first, second] = folders.map((parts) => (parts.length > at ? parts.slice(0, at + 1).join('/') : undefined));
  return first !== undefined && second !== undefined ? [{ from: first, to: second }] : [];
}

function findLoops(edges: readonly Pick<Import, 'from' | 'to'>[]): string[] {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of edges) next.set(from, (next.get(from) ?? new Set()).add(to));
  const circles: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, trail: string[]): void => {
    const seenAt = trail.indexOf(file);
    if (seenAt >= 0) circles.push([...trail.slice(seenAt), file].join(' → '));
    if (seenAt >= 0 || finished.has(file)) return;
    for (const target of next.get(file) ?? []) visit(target, [...trail, file]);
    finished.add(file);
  };
  for (const file of next.keys()) visit(file, []);
  return circles;
}

const DEPLOYABLE = /^(?:edge|functions|infra\/pool\/[^/]+|infra\/[^/]+)(?=\/)/;

/** Returns files of `shared/` that fewer than two deployables import, directly or through other files of it. */
export function findUnshared(imports: Import[], files: Iterable<string>): string[] {
  const users = Map.groupBy(imports, ({ to }) => to);
  const deployablesOf = (file: string): ReadonlySet<string> => {
    const found = (users.get(file) ?? []).flatMap(({ from }) =>
      from.startsWith('shared/') ? [...deployablesOf(from)] : (DEPLOYABLE.exec(from) ?? []),
    );
    return new Set(found);
  };
  return [...files].filter((file) => /^shared\/.*\.ts$/.test(file) && deployablesOf(file).size < 2);
}
