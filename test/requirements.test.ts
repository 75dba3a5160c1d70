import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

/** Each requirement with its state, as `.github/REQUIREMENTS.md` lists it. */
const listed = new Map(
  [...read('.github/REQUIREMENTS.md').matchAll(/^\| ([CRTLMAU]\d+) \|.*\| (tested|partly|open) \|$/gm)].map(
    ([, id = '', state = '']) => [id, state],
  ),
);

/** Requirement IDs at the start of titles of tests: the text of a call, or of a call over a table of cases. */
function namedByTests(): Set<string> {
  const named = new Set<string>();
  for (const file of globSync('test/**/*.ts', { cwd: root })) {
    if (file.endsWith('requirements.test.ts')) continue;
    const titles = read(file).matchAll(/(?:\b(?:describe|it|test)\b[.\w]*(?:\([^'"`\n]*\))?|\))\(\s*(['"`])(.*?)\1/g);
    for (const [, , title = ''] of titles) {
      const [ids = ''] = /^(?:[CRTLMAU]\d{1,2}[,: ]*)+/.exec(title) ?? [];
      for (const [id] of ids.matchAll(/[CRTLMAU]\d{1,2}/g)) named.add(id);
    }
  }
  return named;
}

it('lists every requirement that a test names as tested, whole or partly', () => {
  const tested = [...listed].filter(([, state]) => state !== 'open').map(([id]) => id);
  expect(tested.sort()).toEqual([...namedByTests()].sort());
});
