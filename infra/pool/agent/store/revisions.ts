// Folders of revisions, from which an engine loads. Their files are copies, never links: a hard link is the stored file
// itself, so an engine that writes to it, or a process with its rights, would change what every other engine gets. Where
// the file system clones (Btrfs, XFS with reflink, APFS, ReFS) a copy costs no bytes until one side changes; elsewhere
// the bytes count twice, and a bound of their own covers the copies. The folder may be on tmpfs: then it is the ram tier.
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import path from 'node:path';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { isStorageFull } from '../../../../shared/storage-full.ts';
import { stampRevision } from '../models/revision.ts';
import type { Disk, FetchRefusal, ModelFile, Source } from './contract.ts';
import type { FileStore, LeasedFile } from './file-store.ts';

/** A signed revision's files, by path inside the engine's repository. */
export interface Revision {
  /** `sha256:` and 64 characters of hex. */
  readonly digest: string;
  readonly files: readonly (ModelFile & { readonly name: string })[];
}

export interface RevisionFolder {
  readonly path: string;
  /** Reports whether the folder still has the files that were copied into it, and no others. */
  unchanged(): Promise<boolean>;
  /** Ends the use; the folder stays until its bytes are wanted. */
  release(): void;
}

interface Entry {
  readonly path: string;
  readonly bytes: number;
  readonly stamp: string;
}

export interface RevisionsOptions {
  /** Folder of this agent only; emptied when it is opened. */
  readonly folder: string;
  /** Bound of all copies together. */
  readonly bytes: number;
  readonly store: FileStore;
  readonly disk: Disk;
}

export class Revisions {
  readonly #options: RevisionsOptions;
  /** Folders by revision, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #leases = new Map<string, number>();
  /** Ends with the newest call: folders are made one at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(options: RevisionsOptions) {
    this.#options = options;
  }

  static async open(options: RevisionsOptions): Promise<Revisions> {
    // A former process cannot tell which of its folders were whole.
    await options.disk.rm(options.folder, { recursive: true, force: true });
    await options.disk.mkdir(options.folder, { recursive: true, mode: 0o755 });
    return new Revisions(options);
  }

  /** Returns a folder with the verified files of a revision, made unless it is there unchanged. */
  materialise(revision: Revision, source: Source): Promise<Result<RevisionFolder, FetchRefusal>> {
    const made = this.#turn.then(() => this.#use(revision, source));
    this.#turn = made.catch(() => undefined);
    return made;
  }

  async #use(revision: Revision, source: Source): Promise<Result<RevisionFolder, FetchRefusal>> {
    const { digest, files } = revision;
    if (digestOfFiles(files) !== digest) return refuse(digest, 'digest_mismatch', 'its files are not those it names');
    const odd = files.find(({ name }) => !isInside(name));
    if (odd) return refuse(digest, 'digest_mismatch', `${odd.name} is no path inside a repository`);
    const known = this.#entries.get(digest);
    let entry = known && (await isUnchanged(known)) ? known : undefined;
    if (!entry) {
      const made = await this.#fetchAndCopy(revision, source);
      if (!made.ok) return made;
      entry = made.value;
    }
    this.#entries.delete(digest);
    this.#entries.set(digest, entry);
    return ok(this.#lease(digest, entry));
  }

  #lease(digest: string, entry: Entry): RevisionFolder {
    this.#leases.set(digest, (this.#leases.get(digest) ?? 0) + 1);
    let released = false;
    return {
      path: entry.path,
      unchanged: () => isUnchanged(entry),
      release: () => {
        if (!released) this.#leases.set(digest, (this.#leases.get(digest) ?? 1) - 1);
        released = true;
      },
    };
  }

  async #fetchAndCopy(revision: Revision, source: Source): Promise<Result<Entry, FetchRefusal>> {
    const leased: LeasedFile[] = [];
    try {
      for (const file of revision.files) {
        const fetched = await this.#options.store.fetch(file, source);
        if (!fetched.ok) return fetched;
        leased.push(fetched.value);
      }
      return await this.#copy(revision, leased);
    } catch (error) {
      if (isStorageFull(error)) return refuse(revision.digest, 'disk_full', 'the disk is full');
      throw error;
    } finally {
      for (const file of leased) file.release();
    }
  }

  async #copy({ digest, files }: Revision, leased: readonly LeasedFile[]): Promise<Result<Entry, FetchRefusal>> {
    const { disk, folder, store } = this.#options;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    if (!(await this.#free(digest, bytes))) return refuse(digest, 'store_full', `${bytes} bytes do not fit`);
    const unfinished = path.join(folder, `.${randomUUID()}`);
    try {
      for (const [at, { name, digest: file }] of files.entries()) {
        const target = path.join(unfinished, name);
        await disk.mkdir(path.dirname(target), { recursive: true });
        await disk.copyFile(leased[at]?.path ?? '', target, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
        await disk.chmod(target, 0o444);
        // Verified before the copy and unchanged after it: the copy is of verified bytes.
        if (!(await store.verify(file)))
          return refuse(digest, 'digest_mismatch', `${name} changed while it was copied`);
      }
      const target = path.join(folder, digest.replace(':', '-'));
      await disk.rename(unfinished, target);
      return ok({ path: target, bytes, stamp: await stampRevision(target, ['.'], []) });
    } finally {
      await disk.rm(unfinished, { recursive: true, force: true });
    }
  }

  /** Deletes the folder that is replaced, and unused ones until the new one fits. */
  async #free(digest: string, bytes: number): Promise<boolean> {
    const used = () => [...this.#entries.values()].reduce((sum, entry) => sum + entry.bytes, 0);
    const unused = [...this.#entries.keys()].filter((one) => (this.#leases.get(one) ?? 0) <= 0 && one !== digest);
    for (const one of [digest, ...unused]) {
      if (one !== digest && used() + bytes <= this.#options.bytes) break;
      const entry = this.#entries.get(one);
      if (!entry) continue;
      this.#entries.delete(one);
      await this.#options.disk.rm(entry.path, { recursive: true, force: true });
    }
    return used() + bytes <= this.#options.bytes;
  }
}

const refuse = (digest: string, reason: FetchRefusal['reason'], detail: string) =>
  no<FetchRefusal>({ reason, digest, detail });

const isUnchanged = ({ path: folder, stamp }: Entry): Promise<boolean> =>
  stampRevision(folder, ['.'], []).then(
    (now) => now === stamp,
    () => false,
  );

const isInside = (name: string): boolean =>
  !/[\\\p{Cc}]/u.test(name) && name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
