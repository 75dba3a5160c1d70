// Identity of a revision: the digest of its files and nothing else.
import { z } from 'zod';
import { ascii } from '../bytes.ts';
import { toHex } from '../hex.ts';
import { sha256 } from '../sha256.ts';

export const revisionDigest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

/** Name of a model in requests. */
export const modelName = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/);

/**
 * Returns the SHA-256 over the lines `<sha256 of file> <path>`, sorted by path, as agents compute it of the
 * files they serve. `files` holds paths and SHA-256 in hex.
 */
export function digestOfFiles(files: readonly { readonly name: string; readonly digest: string }[]): string {
  const lines = [...files]
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, digest }) => `${digest} ${name}`);
  return `sha256:${toHex(sha256(ascii(lines.join('\n'))))}`;
}
