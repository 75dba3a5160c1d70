// A bundle in a folder.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';

export function openFolder(folder: string): BundleFiles {
  return {
    async list() {
      const found = readdirSync(folder, { recursive: true, withFileTypes: true });
      return found
        .filter((entry) => entry.isFile())
        .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'));
    },
    async read(name) {
      try {
        return readFileSync(path.join(folder, ...name.split('/')));
      } catch {
        return undefined;
      }
    },
  };
}
