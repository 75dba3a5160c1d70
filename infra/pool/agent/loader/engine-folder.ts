// The engine's model repository, which the agent alone writes. A revision lies there as its parts (the model, the steps
// of an ensemble, the streaming model), each under a name of its own: two revisions of a model are loaded at once and
// share nothing. Files are copies, never links: a hard link is the stored file itself, so a process that writes to it
// would change what every other engine gets. Where the file system clones (Btrfs, XFS with reflink, APFS, ReFS) a copy
// costs no bytes until one side changes. The folder may be on tmpfs: then it is the ram tier, otherwise the page cache is.
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import path from 'node:path';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { filePath } from '../../../../shared/registry/signature-manifest.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { isStorageFull } from '../../../../shared/storage-full.ts';
import { parseText } from '../../models/config/parse-text.ts';
import { stampRevision } from '../models/revision.ts';
import type { Disk, FetchRefusal, ModelFile, Source } from '../store/contract.ts';
import type { FileStore, LeasedFile } from '../store/file-store.ts';
import { renameConfig } from './rename-config.ts';

/** A revision's files, by path inside a model repository. */
export interface Revision {
  /** `sha256:` and 64 characters of hex. */
  readonly digest: string;
  readonly files: readonly (ModelFile & { readonly name: string })[];
}

/** A revision in the engine's repository. */
export interface PlacedRevision {
  /** Folder of all models of the engine. */
  readonly repository: string;
  /** Names of the revision's parts at the engine. */
  readonly parts: readonly string[];
  /** Reports whether its folders still have the files that were copied into them, and no others. */
  unchanged(): Promise<boolean>;
}

/** Returns the name of a revision's part at the engine: its own, a dot, and 12 characters of the digest. */
export const engineName = (part: string, revision: string): string =>
  `${part}.${revision.slice(revision.indexOf(':') + 1).slice(0, 12)}`;

/** Returns the path in the engine's repository of a revision's file. */
export const engineFile = (file: string, revision: string): string =>
  engineName(partOf(file), revision) + file.slice(file.indexOf('/'));

const partOf = (file: string): string => file.slice(0, file.indexOf('/'));
const partsOf = ({ digest, files }: Revision): string[] =>
  [...new Set(files.map(({ name }) => partOf(name)))].map((part) => engineName(part, digest));

export interface EngineFolderOptions {
  /** The engine's repository; its models are deleted when it is opened. */
  readonly folder: string;
  readonly store: FileStore;
  readonly disk: Disk;
}

export class EngineFolder {
  readonly #options: EngineFolderOptions;
  /** Copies on their way, on the file system of the repository and outside it. */
  readonly #unfinished: string;
  readonly #placed = new Map<string, PlacedRevision>();

  private constructor(options: EngineFolderOptions) {
    this.#options = options;
    this.#unfinished = `${options.folder}.unfinished`;
  }

  /** A former process cannot tell which of its folders were whole, so none is taken over. */
  static async open(options: EngineFolderOptions): Promise<EngineFolder> {
    const { disk, folder } = options;
    const opened = new EngineFolder(options);
    await disk.rm(opened.#unfinished, { recursive: true, force: true });
    await disk.mkdir(folder, { recursive: true, mode: 0o755 });
    // The folder itself stays: an engine may watch it or have it mounted.
    for (const name of await disk.readdir(folder)) {
      await disk.rm(path.join(folder, name), { recursive: true, force: true });
    }
    return opened;
  }

  find(revision: string): PlacedRevision | undefined {
    return this.#placed.get(revision);
  }

  /** Copies the verified files of a revision into the repository, fetched from the source where the store lacks them. */
  async place(revision: Revision, source: Source): Promise<Result<PlacedRevision, FetchRefusal>> {
    const { digest, files } = revision;
    if (digestOfFiles(files) !== digest) return refuse(digest, 'digest_mismatch', 'its files are not those it names');
    const odd = files.find(({ name }) => !filePath.safeParse(name).success || !name.includes('/'));
    if (odd) return refuse(digest, 'digest_mismatch', `${odd.name} is no file of a model`);
    await this.remove(digest);
    const leased: LeasedFile[] = [];
    try {
      for (const file of files) {
        const fetched = await this.#options.store.fetch(file, source);
        if (!fetched.ok) return fetched;
        leased.push(fetched.value);
      }
      return await this.#copy(revision, leased);
    } catch (error) {
      if (isStorageFull(error)) return refuse(digest, 'disk_full', 'the disk is full');
      throw error;
    } finally {
      for (const file of leased) file.release();
    }
  }

  async remove(revision: string): Promise<void> {
    const placed = this.#placed.get(revision);
    this.#placed.delete(revision);
    await this.#delete(placed?.parts ?? []);
  }

  async #delete(parts: readonly string[]): Promise<void> {
    const { disk, folder } = this.#options;
    for (const part of parts) await disk.rm(path.join(folder, part), { recursive: true, force: true });
  }

  async #copy(revision: Revision, leased: readonly LeasedFile[]): Promise<Result<PlacedRevision, FetchRefusal>> {
    const { disk, folder, store } = this.#options;
    const unfinished = path.join(this.#unfinished, randomUUID());
    try {
      for (const [at, { name, digest }] of revision.files.entries()) {
        const target = path.join(unfinished, engineFile(name, revision.digest));
        await disk.mkdir(path.dirname(target), { recursive: true });
        await disk.copyFile(leased[at]?.path ?? '', target, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
        // Verified before the copy and unchanged after it: the copy is of verified bytes.
        if (!(await store.verify(digest)))
          return refuse(revision.digest, 'digest_mismatch', `${name} changed while it was copied`);
        const wrong = /^[^/]+\/config\.pbtxt$/.test(name) && (await this.#rename(target, name, revision));
        if (wrong) return refuse(revision.digest, 'unusable', `${name}: ${wrong}`);
        await disk.chmod(target, 0o444);
      }
      const parts = partsOf(revision);
      await this.#delete(parts);
      for (const part of parts) await disk.rename(path.join(unfinished, part), path.join(folder, part));
      const stamp = await stampRevision(folder, parts, []);
      const unchanged = () => stampRevision(folder, parts, []).then(same(stamp), () => false);
      const placed = { repository: folder, parts, unchanged };
      this.#placed.set(revision.digest, placed);
      return ok(placed);
    } finally {
      await disk.rm(unfinished, { recursive: true, force: true });
    }
  }

  /** Rewrites a configuration for the names at the engine; returns a problem with it. */
  async #rename(target: string, file: string, { digest, files }: Revision): Promise<string | undefined> {
    const { disk } = this.#options;
    const parsed = parseText(await disk.readFile(target, 'utf8'));
    if (!parsed.ok) return parsed.refusal.reason;
    const parts = new Set(files.map(({ name }) => partOf(name)));
    const rename = (part: string) => (parts.has(part) ? engineName(part, digest) : part);
    await disk.chmod(target, 0o600);
    await disk.writeFile(target, renameConfig(parsed.value, partOf(file), rename));
    return undefined;
  }
}

const same = (stamp: string) => (now: string) => now === stamp;

const refuse = (digest: string, reason: FetchRefusal['reason'], detail: string) =>
  no<FetchRefusal>({ reason, digest, detail });
