// A bundle in a folder.
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import path from 'node:path';
import type { BundleFiles } from '../../../shared/audit/verify/bundle-files.ts';

/** Buffer for files that are hashed as a stream. */
const PIECE_BYTES = 1024 * 1024;

function digestOfFile(file: string): { readonly sha256: string; readonly bytes: number } {
  const [opened, piece, hash] = [openSync(file, 'r'), Buffer.allocUnsafe(PIECE_BYTES), createHash('sha256')];
  try {
    for (let bytes = 0; ; ) {
      const read = readSync(opened, piece, 0, PIECE_BYTES, bytes);
      if (read === 0) return { sha256: hash.digest('hex'), bytes };
      hash.update(piece.subarray(0, read));
      bytes += read;
    }
  } finally {
    closeSync(opened);
  }
}

export function openFolder(folder: string): BundleFiles {
  const fileOf = (name: string) => path.join(folder, ...name.split('/'));
  return {
    async list() {
      const found = readdirSync(folder, { recursive: true, withFileTypes: true });
      return found
        .filter((entry) => entry.isFile())
        .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'));
    },
    async read(name) {
      try {
        return readFileSync(fileOf(name));
      } catch {
        return undefined;
      }
    },
    async digest(name) {
      try {
        return digestOfFile(fileOf(name));
      } catch {
        return undefined;
      }
    },
  };
}
