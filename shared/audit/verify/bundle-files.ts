// Files of a bundle, wherever they are: a folder, an archive, what somebody dropped on a page.
import { toHex } from '../../hex.ts';
import { sha256 } from '../../seal/bytes.ts';
import type { FileDigest } from '../bundle/manifest.ts';

export interface BundleFiles {
  /** Paths below the bundle, with slashes. */
  list(): Promise<readonly string[]>;
  read(path: string): Promise<Uint8Array | undefined>;
  /** Of a file that need not be held, where the platform can do it piece by piece. */
  digest?(path: string): Promise<Omit<FileDigest, 'path'> | undefined>;
}

export const digestOf = async (bytes: Uint8Array): Promise<string> => toHex(await sha256(bytes));
