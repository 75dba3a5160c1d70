import path from 'node:path';
import { type Disk, type ModelFile, type StoreOptions, unlessMissing } from './contract.ts';
import { isStale } from './lock.ts';

/** A download on disk: its name carries digest, reserved bytes and writer. */
export interface Part extends ModelFile {
  readonly path: string;
}

export interface Usage {
  readonly files: readonly ModelFile[];
  readonly parts: readonly Part[];
  readonly bytes: number;
}

const PART = /^([0-9a-f]{64})\.(\d+)\.[\w-]+$/;
const FILE = /^[0-9a-f]{64}$/;

export const lockName = (digest: string) => `${digest}.lock`;
export const partName = ({ digest, bytes }: ModelFile, writer: string) => `${digest}.${bytes}.${writer}`;

/**
 * Counts what is stored and what is reserved. The folder is the only account, so that every process sees the same.
 * Lists parts first: a part that another process publishes meanwhile counts twice rather than not at all.
 */
export async function readUsage(disk: Disk, files: string, parts: string): Promise<Usage> {
  const reserved = (await disk.readdir(parts)).flatMap((name): Part[] => {
    const [, digest, bytes] = PART.exec(name) ?? [];
    return digest === undefined ? [] : [{ digest, bytes: Number(bytes), path: path.join(parts, name) }];
  });
  const stored: ModelFile[] = [];
  for (const digest of await disk.readdir(files)) {
    const found = FILE.test(digest) ? await unlessMissing(disk.stat(path.join(files, digest))) : undefined;
    if (found) stored.push({ digest, bytes: found.size });
  }
  const bytes = [...stored, ...reserved].reduce((sum, one) => sum + one.bytes, 0);
  return { files: stored, parts: reserved, bytes };
}

/** Deletes parts whose writers are gone, until so many bytes are free. Returns the bytes that it freed. */
export async function dropAbandoned(
  options: Pick<StoreOptions, 'disk' | 'now'>,
  parts: readonly Part[],
  wanted: number,
): Promise<number> {
  let freed = 0;
  for (const part of parts) {
    if (freed >= wanted) break;
    if (!(await isStale(options, path.join(path.dirname(part.path), lockName(part.digest))))) continue;
    await unlessMissing(options.disk.unlink(part.path));
    freed += part.bytes;
  }
  return freed;
}
