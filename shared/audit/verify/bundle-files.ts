// Files of a bundle in a folder, an archive, or dropped on a page.

import { sha256 } from '../../bytes.ts';
import { toHex } from '../../hex.ts';
import type { FileDigest } from '../bundle/manifest.ts';

export interface BundleFiles {
  /** Paths relative to the bundle, with slashes. */
  list(): Promise<readonly string[]>;
  read(path: string): Promise<Uint8Array | undefined>;
  /** Digest of a file without buffering it, where the platform can stream. */
  digest?(path: string): Promise<Omit<FileDigest, 'path'> | undefined>;
}

export const digestOf = async (bytes: Uint8Array): Promise<string> => toHex(await sha256(bytes));
