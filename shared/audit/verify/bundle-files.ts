// Files of a bundle in a folder, an archive, or dropped on a page.

import { toHex } from '../../hex.ts';
import type { FileDigest } from '../bundle/manifest.ts';

export interface BundleFiles {
  /** Paths relative to the bundle, with slashes. */
  list(): Promise<readonly string[]>;
  read(path: string): Promise<Uint8Array | undefined>;
  /** Digest of a file without buffering it, where the platform can stream. */
  digest?(path: string): Promise<Omit<FileDigest, 'path'> | undefined>;
}

/** SHA-256 of a whole file, by WebCrypto: parts have megabytes. */
export const digestOf = async (bytes: Uint8Array): Promise<string> =>
  toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as BufferSource)));
