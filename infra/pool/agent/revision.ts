import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';

/** Digests of files as they were when last read, so that only changed ones are read again. */
export type KnownDigests = Map<string, { stamp: string; digest: string }>;

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

/** SHA-256 in hex. Networks are larger than memory should be for this, so a file passes through piece by piece. */
async function digestFile(file: string, known: KnownDigests): Promise<string> {
  const { size, mtimeMs, ctimeMs, ino } = await stat(file);
  const stamp = [size, mtimeMs, ctimeMs, ino].join(' ');
  const before = known.get(file);
  if (before?.stamp === stamp) return before.digest;
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  const digest = hash.digest('hex');
  known.set(file, { stamp, digest });
  return digest;
}

/**
 * Digest of everything that makes a revision: SHA-256 over the lines `<sha256 of file> <path>` of all files of the
 * ensemble, of the models it is composed of and of the files it names, sorted by path inside the repository.
 */
export async function digestRevision(
  repository: string,
  folders: readonly string[],
  files: readonly string[],
  known: KnownDigests = new Map(),
): Promise<string> {
  const own = await Promise.all(folders.map((folder) => listFiles(path.join(repository, folder))));
  const all = new Set([...own.flat(), ...files].map((file) => path.resolve(file)));
  const lines: string[] = [];
  for (const file of [...all].sort()) {
    lines.push(`${await digestFile(file, known)} ${path.relative(repository, file).split(path.sep).join('/')}`);
  }
  lines.sort((a, b) => (a.slice(65) < b.slice(65) ? -1 : 1));
  return `sha256:${createHash('sha256').update(lines.join('\n')).digest('hex')}`;
}
