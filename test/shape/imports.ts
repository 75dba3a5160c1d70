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

/** Returns circles among the folders directly below `parent`, which ends in a slash. */
export function findFolderCircles(imports: Import[], parent: string): string[] {
  const folderOf = (file: string) =>
    file.startsWith(parent) ? /^[^/]+\//.exec(file.slice(parent.length))?.[0] : undefined;
  const between = imports.flatMap((one) => {
    const [from, to] = [folderOf(one.from), folderOf(one.to)];
    return from !== undefined && to !== undefined && from !== to ? [{ from, to }] : [];
  });
  return findLoops(between);
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
