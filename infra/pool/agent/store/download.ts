import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { MODEL_COPY_BYTES } from '../settings/limits.ts';
import type { Disk, FetchRefusal, ModelFile, Source, StoreMetrics } from './contract.ts';
import type { FileLock } from './lock.ts';

export interface Download {
  readonly disk: Disk;
  readonly file: ModelFile;
  readonly source: Source;
  /** An existing part: empty, or the begin of the file. */
  readonly part: string;
  readonly lock: FileLock;
  readonly signal: AbortSignal;
  readonly metrics: StoreMetrics | undefined;
}

/** `restart`: bytes of an earlier writer were wrong. `overtaken`: another process downloads. The part is useless. */
type Attempt = 'verified' | 'restart' | 'overtaken';

/**
 * Completes a part and verifies it, hashing while it writes; what is there is hashed again. Resolves to `verified` once
 * the bytes are on disk. A part that may be resumed stays.
 */
export async function download(job: Download): Promise<Result<Attempt, FetchRefusal>> {
  const { disk, file, part } = job;
  const handle = await disk.open(part, 'r+');
  try {
    const hash = createHash('sha256');
    const resumed = await hashPart(handle, hash);
    if (resumed > file.bytes) return ok('restart');
    const end = await append(handle, hash, resumed, job);
    if (!end.ok) return end;
    if (end.value === 'overtaken') return ok('overtaken');
    const digest = hash.digest('hex');
    if (digest === file.digest) {
      await handle.sync();
      return ok('verified');
    }
    if (resumed > 0) return ok('restart');
    return mismatch(file, `the source sent ${digest}`);
  } finally {
    await handle.close();
  }
}

const mismatch = ({ digest }: ModelFile, detail: string) =>
  no<FetchRefusal>({ reason: 'digest_mismatch', digest, detail });

/** Hashes what is there and returns its length. */
async function hashPart(handle: FileHandle, hash: Hash): Promise<number> {
  const piece = Buffer.allocUnsafeSlow(MODEL_COPY_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await handle.read(piece, 0, piece.length, at);
    if (bytesRead === 0) return at;
    hash.update(piece.subarray(0, bytesRead));
    at += bytesRead;
  }
}

async function append(
  handle: FileHandle,
  hash: Hash,
  from: number,
  { file, source, lock, signal, metrics }: Download,
): Promise<Result<'complete' | 'overtaken', FetchRefusal>> {
  let at = from;
  let failure: string | undefined;
  // Separates failures of the source from those of the disk.
  async function* pieces() {
    try {
      yield* source.read(file, from, signal);
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
    }
  }
  if (from < file.bytes) {
    for await (const piece of pieces()) {
      metrics?.received(piece.length);
      if (signal.aborted) break;
      if (at + piece.length > file.bytes) return mismatch(file, `the source sent more than ${file.bytes} bytes`);
      await writeAll(handle, piece, at);
      hash.update(piece);
      at += piece.length;
      if (lock.isLost) return ok('overtaken');
    }
  }
  if (at === file.bytes) return ok('complete');
  const { digest } = file;
  if (signal.aborted) return no({ reason: 'stopped', digest, detail: 'the store stops' });
  return no({
    reason: 'source_failed',
    digest,
    detail: failure ?? `the source ended after ${at} of ${file.bytes} bytes`,
  });
}

async function writeAll(handle: FileHandle, piece: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    const { bytesWritten } = await handle.write(piece, done, piece.length - done, at + done);
    done += bytesWritten;
  }
}
