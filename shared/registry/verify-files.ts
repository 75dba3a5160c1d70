// Verifies that files match their signature, once, when a revision enters memory or a disk, never at a
// switch. Files are read piecewise, so that a network of any size takes the memory of one piece.
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { digestOfFiles } from './revision.ts';
import type { HashName } from './signature-key.ts';
import type { Manifest, Piece } from './signature-manifest.ts';

/** An incremental digest. Node's library has both algorithms, ten times as fast as ours. */
export interface Hash {
  update(bytes: Uint8Array): unknown;
  /** Returns the digest in hex. */
  finish(): string;
}

export interface Files {
  /** Lists the paths of all files below the folder of the model. */
  list(): Promise<readonly string[]>;
  open(file: string): AsyncIterable<Uint8Array>;
  hash(name: HashName): Hash;
}

export interface VerifiedFiles {
  /** Digest of the revision that the files make. */
  readonly revision: string;
  readonly bytes: number;
}

const changed = (rule: string) => no(refuse('signature_invalid', { rule }));

export async function verifyFiles(manifest: Manifest, files: Files): Promise<Result<VerifiedFiles>> {
  const signed = new Map<string, Piece[]>();
  for (const piece of manifest.pieces) signed.set(piece.file, [...(signed.get(piece.file) ?? []), piece]);
  const ignored = new Set(manifest.ignored);
  const there = new Set((await files.list()).filter((file) => !ignored.has(file)));
  for (const file of there) if (!signed.has(file)) return changed(`the file "${file}" is not signed`);
  for (const file of signed.keys()) if (!there.has(file)) return changed(`the file "${file}" is missing`);
  const digests: { name: string; digest: string }[] = [];
  let bytes = 0;
  for (const [file, pieces] of signed) {
    const read = await readFile(files, file, pieces, manifest.hash);
    if (!read) return changed(`the file "${file}" is not the one that was signed`);
    digests.push({ name: file, digest: read.digest });
    bytes += read.bytes;
  }
  const revision = digestOfFiles(digests);
  if (manifest.revision !== undefined && manifest.revision !== revision) {
    return changed('its files make another revision than it says');
  }
  return ok({ revision, bytes });
}

/** Returns the SHA-256 of the whole file when every piece matches its signature; `undefined` otherwise. */
async function readFile(files: Files, file: string, pieces: readonly Piece[], hash: HashName) {
  const whole = files.hash('sha256');
  const rest = [...pieces];
  let bytes = 0;
  let piece = rest.shift();
  let digest = files.hash(hash);
  for await (const chunk of files.open(file)) {
    whole.update(chunk);
    let left = chunk;
    while (left.length > 0) {
      if (!piece) return undefined;
      const part = left.subarray(0, piece.to === undefined ? left.length : piece.to - bytes);
      digest.update(part);
      bytes += part.length;
      left = left.subarray(part.length);
      if (bytes !== piece.to) continue;
      if (digest.finish() !== piece.digest) return undefined;
      [piece, digest] = [rest.shift(), files.hash(hash)];
    }
  }
  // The rest is a whole file, an empty one, or a truncated one.
  if (
    piece &&
    (rest.length > 0 || (piece.to !== undefined && piece.to !== bytes) || digest.finish() !== piece.digest)
  ) {
    return undefined;
  }
  return { digest: whole.finish(), bytes };
}
