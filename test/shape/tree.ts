import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Files by their path from the repository's root, with their text. Guards take this, so that a fixture can be one. */
export type Tree = Map<string, string>;

/** Installed and generated folders. */
const NOT_OURS = new Set([
  'node_modules',
  '.git',
  '.auricle',
  'dist',
  '.venv',
  '__pycache__',
  '.wrangler',
  '.vite',
  '.npm',
]);
const TEXT = /\.(ts|js|cjs|mjs|py|sh|json|jsonc|md|yaml|yml|tpl|html|css|pbtxt|bicep|tf|proto|txt|svg)$/;
const PLAIN_NAMES = new Set(['LICENSE', 'Dockerfile', 'run', 'full', '.npmrc', '.gitignore']);

export function readTree(root: string): Tree {
  const tree: Tree = new Map();
  const walk = (folder: string): void => {
    for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      const name = path.posix.join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!NOT_OURS.has(entry.name)) walk(name);
      } else if (TEXT.test(entry.name) || PLAIN_NAMES.has(entry.name)) {
        tree.set(name, readFileSync(path.join(root, name), 'utf8'));
      }
    }
  };
  walk('');
  return tree;
}

export const isCode = (file: string): boolean => /\.(ts|js|cjs|mjs|py|sh)$/.test(file);
export const isTypeScript = (file: string): boolean => file.endsWith('.ts') && !file.endsWith('.d.ts');
