import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

// The customer fixed the top level of the repository, and packages that must really be used.

const root = path.join(import.meta.dirname, '..');
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);

describe('C3 the top level', () => {
  it('holds the required names', () => {
    const top = new Set(tracked.map((file) => file.split('/')[0]));
    const asked = ['package.json', 'tsconfig.json', 'functions', 'edge', 'shared', 'infra', 'test', 'README.md'];
    expect(asked.filter((name) => !top.has(name))).toEqual([]);
  });

  it('holds nothing else visible but licence, lockfile and linter settings', () => {
    const top = new Set(tracked.map((file) => file.split('/')[0] ?? '').filter((name) => !name.startsWith('.')));
    const known = ['package.json', 'tsconfig.json', 'functions', 'edge', 'shared', 'infra', 'test', 'README.md'];
    expect([...top].filter((name) => !known.includes(name)).sort()).toEqual([
      'LICENSE',
      'biome.json',
      'package-lock.json',
    ]);
  });
});

describe('C2 packages in real use', () => {
  const product = tracked.filter((file) => /^(edge|functions|infra|shared)\/.*\.ts$/.test(file));
  const sources = product.map((file) => [file, readFileSync(path.join(root, file), 'utf8')] as const);
  const importers = (name: string) =>
    sources.filter(([, text]) => new RegExp(`from '${name}(/[^']*)?'`).test(text)).map(([file]) => file);

  it.each([
    ['hono', 'edge/'],
    ['jose', 'edge/'],
    ['zod', 'shared/'],
    ['@azure/functions', 'functions/'],
    ['@azure/storage-blob', 'functions/'],
    ['@aws-sdk/client-sqs', 'functions/'],
  ])('%s is imported in %s', (name, folder) => {
    expect(importers(name).filter((file) => file.startsWith(folder))).not.toEqual([]);
  });

  it.each(['wrangler', 'vitest'])('%s is pinned and has its configuration', (name) => {
    const { devDependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
    expect(devDependencies[name]).toMatch(/^\d+\.\d+\.\d+$/);
    const configuration = { wrangler: 'edge/wrangler.jsonc', vitest: 'test/vitest.config.ts' }[name] as string;
    expect(tracked).toContain(configuration);
  });
});
