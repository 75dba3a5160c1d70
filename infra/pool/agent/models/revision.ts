import { createHash } from 'node:crypto';
import promises from 'node:fs/promises';
import path from 'node:path';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { MODEL_COPY_BYTES } from '../settings/limits.ts';

/**
 * Digests of files as they were when last read, so that only changed ones are read again. By what the file system calls
 * them and not by where they lie: a folder that is moved away and back was read before.
 */
export type KnownDigests = Map<string, { stamp: string; digest: string }>;

/** File system of a repository. */
type Files = Pick<typeof promises, 'open' | 'readdir' | 'stat'>;

export interface FoundRevision {
  readonly revision: string;
  /** By path inside the repository, SHA-256 in hex. */
  readonly files: readonly { readonly name: string; readonly digest: string; readonly bytes: number }[];
}

async function listFiles(repository: string, folder: string, disk: Files): Promise<string[]> {
  const entries = await disk.readdir(path.join(repository, folder), { withFileTypes: true, recursive: true });
  const placeOf = (entry: (typeof entries)[number]) => path.join(entry.parentPath, entry.name);
  // An engine follows a link: what it leads to would be served and be in no digest.
  const odd = entries.find((entry) => !entry.isFile() && !entry.isDirectory());
  if (odd) throw new Error(`${path.relative(repository, placeOf(odd))} is neither a file nor a folder`);
  return entries.filter((entry) => entry.isFile()).map(placeOf);
}

/** Returns all files of the folders, and the named ones, sorted. */
async function filesOf(
  repository: string,
  folders: readonly string[],
  named: readonly string[],
  disk: Files = promises,
): Promise<string[]> {
  const own = await Promise.all(folders.map((folder) => listFiles(repository, folder, disk)));
  return [...new Set([...own.flat(), ...named].map((file) => path.resolve(file)))].sort();
}

/** Identifies a file, and a state of it. */
export async function stampOf(
  file: string,
  disk: Pick<Files, 'stat'> = promises,
): Promise<{ id: string; stamp: string }> {
  const { size, mtimeMs, ctimeMs, ino, dev } = await disk.stat(file);
  return { id: `${dev} ${ino}`, stamp: [size, mtimeMs, ctimeMs].join(' ') };
}

/** SHA-256 in hex. Networks are larger than memory should be for this, so a file passes through piece by piece. */
export async function digestFile(file: string, known: KnownDigests, disk: Files = promises): Promise<string> {
  const { id, stamp } = await stampOf(file, disk);
  const before = known.get(id);
  if (before?.stamp === stamp) return before.digest;
  const hash = createHash('sha256');
  const opened = await disk.open(file);
  try {
    // One piece of memory, filled again and again: as many new ones as a network is long would wait to be collected.
    const piece = Buffer.allocUnsafeSlow(MODEL_COPY_BYTES);
    for (;;) {
      const { bytesRead } = await opened.read(piece, 0, piece.length, null);
      if (bytesRead === 0) break;
      hash.update(piece.subarray(0, bytesRead));
    }
  } finally {
    await opened.close();
  }
  const after = await stampOf(file, disk);
  if (after.id !== id || after.stamp !== stamp) throw new Error(`${path.basename(file)} changed while it was read`);
  const digest = hash.digest('hex');
  known.set(id, { stamp, digest });
  return digest;
}

/**
 * Everything that makes a revision (`shared/registry/revision.ts`): all files of the ensemble, of the models it is composed of
 * and the files it names, by their paths inside the repository.
 */
export async function digestRevision(
  repository: string,
  folders: readonly string[],
  named: readonly string[],
  known: KnownDigests = new Map(),
): Promise<FoundRevision> {
  const files: FoundRevision['files'][number][] = [];
  for (const file of await filesOf(repository, folders, named)) {
    const name = path.relative(repository, file).split(path.sep).join('/');
    files.push({ name, digest: await digestFile(file, known), bytes: (await promises.stat(file)).size });
  }
  return { revision: digestOfFiles(files), files };
}

/**
 * Returns the file system's state of the files: another text when one has changed, come or gone. Reads no
 * content.
 */
export async function stampRevision(
  repository: string,
  folders: readonly string[],
  named: readonly string[],
  disk: Files = promises,
): Promise<string> {
  const files = await filesOf(repository, folders, named, disk);
  const stamps = await Promise.all(files.map((file) => stampOf(file, disk)));
  return files.map((file, at) => [file, stamps[at]?.id, stamps[at]?.stamp].join(' ')).join('\n');
}
