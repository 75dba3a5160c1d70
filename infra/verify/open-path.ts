// Bundles by path: a folder, or an archive of one.
import { open, stat } from 'node:fs/promises';
import { inflateRawSync } from 'node:zlib';
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import { openFolder } from '../cli/audit/bundle-folder.ts';
import { openArchive } from './archive.ts';
import type { Inflate } from './read-zip.ts';

const inflate: Inflate = async (bytes, most) => {
  try {
    return inflateRawSync(bytes, { maxOutputLength: Math.max(1, most) });
  } catch {
    return undefined;
  }
};

/**
 * Opens a path; rejects a missing one. The file of an archive stays open: the process ends with its verdict.
 */
export async function openPath(path: string): Promise<BundleFiles> {
  const found = await stat(path);
  if (found.isDirectory()) return openFolder(path);
  const { size } = found;
  const file = await open(path);
  const slice = async (from: number, to: number): Promise<Uint8Array> => {
    const buffer = Buffer.alloc(Math.max(0, Math.min(to, size) - from));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
    return buffer.subarray(0, bytesRead);
  };
  return openArchive({ size, slice }, inflate);
}
