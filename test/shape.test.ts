// The rules of the tree that no compiler checks. Every guard is also shown a tree that breaks it: a guard that cannot
// fail guards nothing.
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { findWrongDirections } from './shape/directions.ts';
import { findCircles, findFolderCircles, findUnshared, readImports } from './shape/imports.ts';
import { findDefaultExports, findLongFiles, findProcessChanges, findWrongNames } from './shape/names.ts';
import { findObliqueTests } from './shape/test-names.ts';
import { readTree, type Tree } from './shape/tree.ts';
import { findRiddles } from './shape/wording.ts';
import { findForbiddenWords } from './shape/words.ts';

const tree = readTree(path.resolve(import.meta.dirname, '..'));
const imports = readImports(tree);
const made = (files: Record<string, string>): Tree => new Map(Object.entries(files));
const direction = (from: string, statement: string) => findWrongDirections(readImports(made({ [from]: statement })));

it('reads the tree', () => {
  expect(tree.has('package.json')).toBe(true);
  expect(imports.length).toBeGreaterThan(50);
});

describe('import directions', () => {
  it('hold', () => expect(findWrongDirections(imports)).toEqual([]));

  it.each([
    ['edge/a.ts', "import { b } from '../functions/b.ts';"],
    ['functions/a.ts', "import { b } from '../edge/b.ts';"],
    ['edge/a.ts', "import { b } from '../infra/pool/agent/b.ts';"],
    ['infra/pool/agent/a.ts', "import { b } from '../../../edge/b.ts';"],
    ['infra/pool/engine/a.ts', "import { b } from '../agent/b.ts';"],
    ['infra/pool/engine/a.ts', "import { b } from '../../local/b.ts';"],
    ['shared/a.ts', "import { b } from '../edge/b.ts';"],
    ['shared/a.ts', "import fs from 'node:fs';"],
    ['shared/a.ts', "import { Hono } from 'hono';"],
    ['edge/a.ts', "export { b } from '../test/b.ts';"],
    ['edge/a.ts', "const b = await import('../test/b.ts');"],
    ['edge/a.ts', "import { SQSClient } from '@aws-sdk/client-sqs';"],
    ['edge/a.ts', "import page from '../infra/dashboards/page.html';"],
    ['functions/a.ts', "import {\n  Hono,\n} from 'hono';"],
    ['infra/cli/a.ts', "import { b } from '../local/b.ts';"],
    ['elsewhere/a.ts', "import { z } from 'zod';"],
  ])('%s: %s is refused', (from, statement) => expect(direction(from, statement)).toHaveLength(1));

  it.each([
    ['edge/a.ts', "import { b } from '../shared/b.ts';"],
    ['edge/pool/a.ts', "import { DurableObject } from 'cloudflare:workers';"],
    ['infra/local/a.ts', "import { b } from '../../functions/b.ts';"],
    ['functions/a.ts', "// import { b } from '../edge/b.ts';"],
    ['test/a.ts', "import { b } from '../edge/b.ts';"],
  ])('%s: %s is allowed', (from, statement) => expect(direction(from, statement)).toEqual([]));
});

describe('circles', () => {
  it('are absent', () => {
    // Types of tests may refer to each other.
    const followed = imports.filter(({ from, typeOnly }) => !typeOnly || !from.startsWith('test/'));
    expect(findCircles(followed)).toEqual([]);
  });

  it('are absent between folders of the source', () => {
    expect(findFolderCircles(imports.filter(({ from }) => !from.startsWith('test/')))).toEqual([]);
  });

  it('are found between folders', () => {
    const circle = made({
      'edge/http/a.ts': "import { b } from '../auth/b.ts';",
      'edge/auth/c.ts': "import type { D } from '../http/deep/d.ts';",
    });
    expect(findFolderCircles(readImports(circle))).toEqual(['edge/http → edge/auth → edge/http']);
  });

  it('leave out the folder that composes others', () => {
    const composed = made({
      'edge/routes.ts': "import { a } from './http/a.ts';",
      'edge/http/a.ts': "import type { Settings } from '../settings.ts';",
    });
    expect(findFolderCircles(readImports(composed))).toEqual([]);
  });

  it('are found, however long', () => {
    const circle = made({
      'edge/a.ts': "import { b } from './b.ts';",
      'edge/b.ts': "import { c } from './c.ts';",
      'edge/c.ts': "import { a } from './a.ts';",
    });
    expect(findCircles(readImports(circle))).toEqual(['edge/a.ts → edge/b.ts → edge/c.ts → edge/a.ts']);
  });

  it('count imports of types', () => {
    const circle = made({
      'edge/a.ts': "import type { B } from './b.ts';",
      'edge/b.ts': "import { a } from './a.ts';",
    });
    expect(findCircles(readImports(circle))).toEqual(['edge/a.ts → edge/b.ts → edge/a.ts']);
  });
});

describe('shared/', () => {
  it('holds only what two deployables import', () => expect(findUnshared(imports, tree.keys())).toEqual([]));

  it('a file that one deployable imports is found', () => {
    const lone = made({
      'shared/a.ts': "import { b } from './b.ts';",
      'shared/b.ts': '',
      'edge/c.ts': "import { a } from '../shared/a.ts';",
      'functions/d.ts': "import { b } from '../shared/b.ts';",
    });
    expect(findUnshared(readImports(lone), lone.keys())).toEqual(['shared/a.ts']);
  });
});

describe('names and sizes', () => {
  it('no name is empty of meaning', () => expect(findWrongNames(tree)).toEqual([]));

  it.each([
    'edge/utils.ts',
    'edge/core/a.ts',
    'edge/index.ts',
    'edge/pool-manager.ts',
    'edge/PoolList.ts',
    'infra/lib/a.py',
  ])('%s is refused', (file) => expect(findWrongNames(made({ [file]: '' }))).toHaveLength(1));

  it('no file is too long', () => expect(findLongFiles(tree)).toEqual([]));
  it('a long file is refused', () => {
    expect(findLongFiles(made({ 'edge/a.ts': 'a\n'.repeat(500), 'edge/b.ts': 'b\n'.repeat(501) }))).toEqual([
      'edge/b.ts: 501 lines',
    ]);
  });

  it('a test that changes its process runs alone', () => expect(findProcessChanges(tree)).toEqual([]));
  it('a test that changes a shared process is refused', () => {
    const text = "vi.mock('../a.ts');";
    const two = made({ 'test/infra/a.test.ts': text, 'test/infra/b.alone.test.ts': text });
    expect(findProcessChanges(two)).toEqual(['test/infra/a.test.ts']);
  });

  it('only the worker exports a default', () => expect(findDefaultExports(tree)).toEqual([]));
  it('a default export is refused', () => {
    const two = made({ 'edge/a.ts': 'export default {};', 'edge/b.ts': 'const b = 1;\nexport { b as default };' });
    expect(findDefaultExports(two)).toEqual(['edge/a.ts', 'edge/b.ts']);
  });
});

describe('words', () => {
  it('that must not be there are not', () => expect(findForbiddenWords(tree)).toEqual([]));

  it.each([
    ['a path', ['', 'home', 'ann', 'auricle'].join('/')],
    ['unfinished work', `// ${'TO'}DO: later`],
    ['a registry', `"resolved"${': "https://registry.example/zod.tgz"'}`],
    ['a private key', `-----BEGIN ${'PRIVATE'} KEY-----`],
    ['a missing note', `see ${'research'}/crypto.md`],
    ['a lone test', `it${'.only'}('works', () => {});`],
  ])('%s is refused', (_, text) => expect(findForbiddenWords(made({ 'a.md': text }))).toHaveLength(1));
});

describe('comments', () => {
  it('name their subject', () => expect(findRiddles(tree)).toEqual([]));

  it.each([
    `/** ${'What'} a token may do. */`,
    `// ${'Who'} is told.`,
    `/**\n * Releases ${'who'}ever waits.\n */`,
    `// The edge waits\n// for some${'body'}.`,
  ])('%s is refused', (text) => expect(findRiddles(made({ 'edge/a.ts': `${text}\nconst a = 1;` }))).toHaveLength(1));

  it('with a component as subject are accepted', () => {
    const plain = '/** Returns the lease of an isolate. */\nconst a = 1; // Whole seconds.\n';
    expect(findRiddles(made({ 'edge/a.ts': plain }))).toEqual([]);
  });
});

describe('test names', () => {
  it('say condition and outcome', () => expect(findObliqueTests(tree)).toEqual([]));

  it.each([
    `it('${'of'} a tenant', () => {});`,
    `it.each([['a', 1]] as const)('A1 C2: %s is ${'to'}ld', () => {});`,
    `describe('${'word '.repeat(15)}', () => {});`,
  ])('%s is refused', (text) => expect(findObliqueTests(made({ 'test/a.test.ts': text }))).toHaveLength(1));
});
