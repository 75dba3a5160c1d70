import { isCode, isTypeScript, type Tree } from './tree.ts';

/** Names that say where code was put and not what it is about. */
const EMPTY_NAMES = new Set(
  'util utils helper helpers common core misc base manager service handler types lib index'.split(' '),
);

/** Longest file, in lines. Past it a file answers more than one question. */
const LINES_MAX = 500;

export function findWrongNames(tree: Tree): string[] {
  const problems: string[] = [];
  for (const file of tree.keys()) {
    const parts = file.split('/');
    const name = parts.pop() ?? '';
    for (const folder of parts) if (EMPTY_NAMES.has(folder)) problems.push(`${file}: folder name "${folder}"`);
    if (!isCode(file)) continue;
    const stem = name.replace(/\..*$/, '');
    for (const word of stem.split(/[-_]/)) if (EMPTY_NAMES.has(word)) problems.push(`${file}: name "${word}"`);
    if (isTypeScript(file) && !/^[a-z0-9]+(-[a-z0-9]+)*(\.(alone\.test|test|contract|config|bench))?\.ts$/.test(name)) {
      problems.push(`${file}: not kebab-case`);
    }
  }
  return problems;
}

export function findLongFiles(tree: Tree): string[] {
  return [...tree]
    .filter(([file, text]) => isCode(file) && text.split('\n').length > LINES_MAX + 1)
    .map(([file, text]) => `${file}: ${text.split('\n').length - 1} lines`);
}

/** Test files that share a process, and changes that the others would see. */
const SHARED_PROCESS = /^test\/(shared|functions|infra|contract)\/.*(?<!\.alone)\.test\.ts$/;
const PROCESS_CHANGE =
  /\bvi\.(mock|useFakeTimers|stubGlobal|spyOn|setConfig)\(|\bprocess\.(on|once|chdir)\(|\bprocess\.env\.\w+ = /;

/** Returns the test files that change their process without being named `*.alone.test.ts`. */
export function findProcessChanges(tree: Tree): string[] {
  return [...tree]
    .filter(([file, text]) => SHARED_PROCESS.test(file) && PROCESS_CHANGE.test(text))
    .map(([file]) => file);
}

/** Files whose reader insists on a default export. */
const DEFAULT_EXPORTS = new Set([
  'edge/worker.ts',
  'edge/witness/worker.ts',
  'test/vitest.config.ts',
  'test/image/vitest.config.ts',
  'test/triton/vitest.config.ts',
  'test/clients/vitest.config.ts',
  'test/fault/vitest.config.ts',
  'test/fault/outage/matrix/vitest.config.ts',
  'test/cloud/vitest.config.ts',
  'test/go/vitest.config.ts',
  'test/chart/vitest.config.ts',
  'test/browser/vitest.config.ts',
  'test/formats/vitest.config.ts',
]);

export function findDefaultExports(tree: Tree): string[] {
  return [...tree]
    .filter(([file, text]) => isTypeScript(file) && /^export (default\b|\{[^}]*\bas default\b)/m.test(text))
    .map(([file]) => file)
    .filter((file) => !DEFAULT_EXPORTS.has(file));
}
