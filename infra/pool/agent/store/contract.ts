// The agent's store of model files on disk.
//
//   files/DIGEST               verified, read-only, visible by one rename
//   parts/DIGEST.BYTES.WRITER  a download; its name reserves all of its bytes, so that a crash leaves the count right
//   parts/DIGEST.lock          the process that downloads, which touches it every 5 s
//
// | event | the store |
// | --- | --- |
// | crash at any point | shows whole, verified files only; the next fetch resumes the part |
// | source ends early or fails | refuses with `source_failed`, keeps the part |
// | other bytes than the digest's | refuses with `digest_mismatch`, deletes the part; a resumed part is first tried from zero |
// | stored file changed by another process | detects it before each use, deletes it and fetches it again |
// | no evictable bytes | refuses with `store_full`, evicts nothing in vain |
// | full disk | refuses with `disk_full`, deletes the part, keeps every resident |
// | two fetches of a file | share one download; across processes the second waits, and takes over after 30 s of silence |
//
// The lock saves bandwidth only. Each writer has a file of its own, which no other writes to, and verifies it before the
// rename: two writers that both believe to hold the lock publish the same bytes. Pins and leases bind the process that holds them: an eviction by
// another process costs a download.
import type promises from 'node:fs/promises';

export interface ModelFile {
  /** SHA-256, 64 characters of hex. */
  readonly digest: string;
  readonly bytes: number;
}

export interface Source {
  /** Reads a file from a position. Rejects when it fails or stalls; the store does not time it. */
  read(file: ModelFile, from: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

export interface FetchRefusal {
  readonly reason: 'digest_mismatch' | 'source_failed' | 'store_full' | 'disk_full' | 'unusable' | 'stopped';
  /** Digest of the file, or of the revision. */
  readonly digest: string;
  readonly detail: string;
}

export type Disk = Pick<
  typeof promises,
  | 'open'
  | 'mkdir'
  | 'readdir'
  | 'readFile'
  | 'writeFile'
  | 'stat'
  | 'utimes'
  | 'chmod'
  | 'rename'
  | 'rm'
  | 'unlink'
  | 'copyFile'
>;

export interface StoreOptions {
  /** Folder of the store, private to agents of this node. */
  readonly folder: string;
  /** Bound of files and reservations together. */
  readonly bytes: number;
  /** Orders files for eviction, the first to go first; may leave files out, which then stay. */
  readonly order: (files: readonly ModelFile[]) => readonly ModelFile[];
  readonly disk: Disk;
  /** Epoch ms. */
  readonly now: () => number;
  /** Waits; resolves early when the store stops. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Runs work at an interval until the function that it returns is called. Keeps no process alive. */
  readonly every: (ms: number, work: () => Promise<void>) => () => void;
  /** Stops every download. */
  readonly signal: AbortSignal;
  readonly metrics?: StoreMetrics;
}

/** Counts of a store. */
export interface StoreMetrics {
  /** Bytes that a source has sent. */
  received(bytes: number): void;
  notFetched(reason: FetchRefusal['reason']): void;
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}

/** Resolves to `undefined` when a file is not there. */
export const unlessMissing = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  });
