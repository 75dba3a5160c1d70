// What a revision is: the files it is made of, and nothing else. Whoever has the files knows its name.
import { z } from 'zod';
import { sha256 } from '../audit/sha256.ts';
import { toHex } from '../hex.ts';
import { ascii } from '../seal/bytes.ts';

export const revisionDigest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

/** As callers name it. */
export const modelName = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/);

/**
 * SHA-256 over the lines `<sha256 of file> <path>`, sorted by path: what an agent computes of the files it serves. `files`
 * are paths and SHA-256 in hex.
 */
export function digestOfFiles(files: readonly { readonly name: string; readonly digest: string }[]): string {
  const lines = [...files]
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, digest }) => `${digest} ${name}`);
  return `sha256:${toHex(sha256(ascii(lines.join('\n'))))}`;
}
