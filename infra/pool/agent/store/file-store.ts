import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import path from 'node:path';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { isStorageFull } from '../../../../shared/storage-full.ts';
import { digestFile, type KnownDigests, stampOf } from '../models/revision.ts';
import {
  type FetchRefusal,
  isCode,
  type ModelFile,
  type Source,
  type StoreOptions,
  unlessMissing,
} from './contract.ts';
import { download } from './download.ts';
import { FileLock } from './lock.ts';
import { dropAbandoned, lockName, partName, readUsage, type Usage } from './usage.ts';

/** Wait between looks at a file that another process downloads. */
const POLL_MS = 250;

/** A verified file that eviction spares until it is released. */
export interface LeasedFile extends ModelFile {
  readonly path: string;
  release(): void;
}

/** A bounded store of verified files: `contract.ts`. */
export class FileStore {
  readonly #options: StoreOptions;
  readonly #files: string;
  readonly #parts: string;
  /** Digests of files by inode, size and times: a changed file is read again. */
  readonly #known: KnownDigests = new Map();
  readonly #leases = new Map<string, number>();
  readonly #fetching = new Map<string, Promise<Result<undefined, FetchRefusal>>>();
  #pinned: ReadonlySet<string> = new Set();

  private constructor(options: StoreOptions) {
    this.#options = options;
    this.#files = path.join(options.folder, 'files');
    this.#parts = path.join(options.folder, 'parts');
  }

  static async open(options: StoreOptions): Promise<FileStore> {
    const store = new FileStore(options);
    for (const folder of [store.#files, store.#parts]) {
      await options.disk.mkdir(folder, { recursive: true, mode: 0o700 });
    }
    return store;
  }

  /** Files that are here; each is verified when it is fetched. */
  async list(): Promise<readonly ModelFile[]> {
    return (await this.#usage()).files;
  }

  /** Replaces the set of files that eviction never takes. */
  pin(digests: Iterable<string>): void {
    this.#pinned = new Set(digests);
  }

  /** Returns a verified file under a lease, downloaded unless it is here. Concurrent calls share one download. */
  async fetch(file: ModelFile, source: Source): Promise<Result<LeasedFile, FetchRefusal>> {
    const { digest, bytes } = file;
    this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + 1);
    let released = false;
    const release = () => {
      if (!released) this.#release(digest);
      released = true;
    };
    try {
      const done = await this.#shared(file, source);
      if (done.ok) return ok({ digest, bytes, path: path.join(this.#files, digest), release });
      release();
      return done;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Returns whether a stored file has the bytes of its name. Reads it only when it changed since the last look. */
  async verify(digest: string): Promise<boolean> {
    return (await this.#digestOf(digest)) === digest;
  }

  /** Digest of a stored file, `undefined` when it is not there. */
  #digestOf(digest: string): Promise<string | undefined> {
    const read = () => unlessMissing(digestFile(path.join(this.#files, digest), this.#known, this.#options.disk));
    // Without a code of the system it changed while it was read: another process has just published it as well.
    return read().catch((error: unknown) => {
      if (error instanceof Error && 'code' in error) throw error;
      return read();
    });
  }

  /** Deletes a file that is neither pinned nor leased. Returns whether it was. */
  async evict(digest: string): Promise<boolean> {
    if (this.#isEvictionBarred(digest)) return false;
    await unlessMissing(this.#options.disk.unlink(path.join(this.#files, digest)));
    for (const [id, known] of this.#known) if (known.digest === digest) this.#known.delete(id);
    return true;
  }

  #release(digest: string): void {
    const left = (this.#leases.get(digest) ?? 1) - 1;
    if (left > 0) this.#leases.set(digest, left);
    else this.#leases.delete(digest);
  }

  #isEvictionBarred = (digest: string) => this.#leases.has(digest) || this.#pinned.has(digest);
  #usage = () => readUsage(this.#options.disk, this.#files, this.#parts);

  #shared(file: ModelFile, source: Source): Promise<Result<undefined, FetchRefusal>> {
    const running = this.#fetching.get(file.digest);
    if (running) return running;
    const begun = this.#count(file, source).finally(() => this.#fetching.delete(file.digest));
    this.#fetching.set(file.digest, begun);
    return begun;
  }

  async #count(file: ModelFile, source: Source): Promise<Result<undefined, FetchRefusal>> {
    const done = await this.#obtain(file, source).catch((error: unknown) => {
      if (!isStorageFull(error)) throw error;
      return no<FetchRefusal>({ reason: 'disk_full', digest: file.digest, detail: 'the disk is full' });
    });
    if (!done.ok) this.#options.metrics?.notFetched(done.refusal.reason);
    return done;
  }

  async #obtain(file: ModelFile, source: Source): Promise<Result<undefined, FetchRefusal>> {
    const { sleep, signal } = this.#options;
    for (;;) {
      if (await this.#isHere(file.digest)) return ok(undefined);
      if (signal.aborted) return no({ reason: 'stopped', digest: file.digest, detail: 'the store stops' });
      const lock = await FileLock.acquire(this.#options, path.join(this.#parts, lockName(file.digest)));
      if (!lock) {
        await sleep(POLL_MS, signal);
        continue;
      }
      try {
        // Another process may have finished before the lock was free.
        if (await this.#isHere(file.digest)) return ok(undefined);
        const done = await this.#downloadLocked(file, source, lock);
        if (!done.ok || done.value === 'verified') return done.ok ? ok(undefined) : done;
      } finally {
        await lock.release();
      }
    }
  }

  /** Reports whether the file is here; deletes one with other bytes. */
  async #isHere(digest: string): Promise<boolean> {
    const found = await this.#digestOf(digest);
    if (found !== undefined && found !== digest) {
      await unlessMissing(this.#options.disk.unlink(path.join(this.#files, digest)));
    }
    return found === digest;
  }

  async #downloadLocked(file: ModelFile, source: Source, lock: FileLock) {
    const { disk, signal, metrics } = this.#options;
    const part = path.join(this.#parts, partName(file, randomUUID()));
    let keep = false;
    try {
      const room = await this.#reserve(file, part);
      if (!room.ok) return room;
      const done = await download({ disk, file, source, part, lock, signal, metrics });
      // The bytes stay for the next fetch unless they are wrong.
      keep = !done.ok && done.refusal.reason !== 'digest_mismatch';
      if (!done.ok || done.value !== 'verified') return done;
      return (await this.#publish(file.digest, part)) ? done : ok('overtaken' as const);
    } catch (error) {
      // Another process that believes to hold the lock took the part.
      if (isCode(error, 'ENOENT') && !(await unlessMissing(disk.stat(part)))) return ok('overtaken' as const);
      keep = !isStorageFull(error);
      throw error;
    } finally {
      if (!keep) await unlessMissing(disk.unlink(part));
    }
  }

  /** Makes a verified part visible, for good. Returns false when another process has evicted it at once. */
  async #publish(digest: string, part: string): Promise<boolean> {
    const { disk } = this.#options;
    const file = path.join(this.#files, digest);
    await disk.chmod(part, 0o400);
    await disk.rename(part, file);
    const folder = await disk.open(this.#files, 'r');
    await folder.sync().finally(() => folder.close());
    const found = await unlessMissing(stampOf(file, disk));
    if (found) this.#known.set(found.id, { stamp: found.stamp, digest });
    return found !== undefined;
  }

  /**
   * Creates the part, with the bytes of an earlier one, and then frees bytes until everything fits. Two processes that
   * reserve at once count each other's parts, so the bound holds. Bytes are copied: a writer that was silent and wakes
   * up writes into its own file.
   */
  async #reserve(file: ModelFile, part: string): Promise<Result<undefined, FetchRefusal>> {
    const { disk, bytes } = this.#options;
    await (await disk.open(part, 'wx', 0o600)).close();
    let usage = await this.#usage();
    const earlier = usage.parts.filter((one) => one.digest === file.digest && one.path !== part);
    for (const [at, one] of earlier.entries()) {
      if (at === 0 && usage.bytes <= bytes) {
        await unlessMissing(disk.copyFile(one.path, part, constants.COPYFILE_FICLONE));
        await disk.chmod(part, 0o600);
      }
      await unlessMissing(disk.unlink(one.path));
    }
    if (earlier.length > 0) usage = await this.#usage();
    if (await this.#free(usage, file.digest, usage.bytes - bytes)) return ok(undefined);
    const detail = `${file.bytes} bytes do not fit: ${usage.bytes - file.bytes} of ${bytes} are in use`;
    return no({ reason: 'store_full', digest: file.digest, detail });
  }

  /** Deletes abandoned parts, then files in the policy's order. Deletes no file unless they suffice. */
  async #free({ files, parts }: Usage, digest: string, wanted: number): Promise<boolean> {
    if (wanted <= 0) return true;
    const others = parts.filter((part) => part.digest !== digest);
    let missing = wanted - (await dropAbandoned(this.#options, others, wanted));
    const evictable = this.#options.order(files.filter((file) => !this.#isEvictionBarred(file.digest)));
    if (evictable.reduce((sum, { bytes }) => sum + bytes, 0) < missing) return false;
    for (const file of evictable) {
      if (missing <= 0) break;
      if (await this.evict(file.digest)) missing -= file.bytes;
    }
    return missing <= 0;
  }
}
