// The engine's model repository, which the agent alone writes. A revision lies there as its parts (the model, the steps
// of an ensemble, the streaming model), each under a name that its files give it: two revisions of a model are loaded at
// once, and share the parts that are equal. Files are copies, never links: a hard link is the stored file itself, so a
// process that writes to it would change what every other engine gets. Where the file system clones (Btrfs, XFS with
// reflink, APFS, ReFS) a copy costs no bytes until one side changes. The folder may be on tmpfs: then it is the ram
// tier, otherwise the page cache is.
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import path from 'node:path';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { filePath } from '../../../../shared/registry/signature-manifest.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { isStorageFull } from '../../../../shared/storage-full.ts';
import { parseText } from '../../models/config/parse-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { stampRevision } from '../models/revision.ts';
import type { Disk, FetchRefusal, ModelFile, Source } from '../store/contract.ts';
import type { FileStore, LeasedFile } from '../store/file-store.ts';
import { type BuildFile, placedName } from './builds.ts';
import { engineNames, isConfig, partOf, renameConfig } from './engine-names.ts';

/** A revision's files, by path inside a model repository. */
export interface Revision {
  /** `sha256:` and 64 characters of hex. */
  readonly digest: string;
  /** Files that are loaded. */
  readonly files: readonly (ModelFile & BuildFile)[];
  /** Files of other builds, which the digest covers as well. */
  readonly others?: readonly BuildFileDigest[];
}

type BuildFileDigest = BuildFile & Pick<ModelFile, 'digest'>;

/** A revision in the engine's repository. */
export interface PlacedRevision {
  /** Folder of all models of the engine. */
  readonly repository: string;
  /** Names at the engine, by part. */
  readonly names: ReadonlyMap<string, string>;
  /** Reports whether its folders still have the files that were copied into them, and no others. */
  unchanged(): Promise<boolean>;
}

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
  /** State of each part's files after the copy. */
  readonly #stamps = new Map<string, string>();

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
    const { digest, others = [] } = revision;
    if (digestOfFiles([...revision.files, ...others]) !== digest)
      return refuse(digest, 'digest_mismatch', 'its files are not those it names');
    const files = revision.files.map((file) => ({ ...file, name: placedName(file) }));
    const odd = files.find(({ name }) => !filePath.safeParse(name).success || !name.includes('/'));
    if (odd) return refuse(digest, 'digest_mismatch', `${odd.name} is no file of a model`);
    const leased: LeasedFile[] = [];
    try {
      for (const file of files) {
        const fetched = await this.#options.store.fetch(file, source);
        if (!fetched.ok) return fetched;
        leased.push(fetched.value);
      }
      const configs = await this.#readConfigs(files, leased);
      if (!configs.ok) return refuse(digest, 'unusable', configs.refusal);
      return await this.#copy({ digest, files }, leased, configs.value);
    } catch (error) {
      if (isStorageFull(error)) return refuse(digest, 'disk_full', 'the disk is full');
      throw error;
    } finally {
      for (const file of leased) file.release();
    }
  }

  /** Deletes the parts of a revision that no other one has. */
  async remove(revision: string): Promise<void> {
    const placed = this.#placed.get(revision);
    this.#placed.delete(revision);
    await this.#delete([...(placed?.names.values() ?? [])].filter((part) => !this.#isUsed(part)));
  }

  #isUsed = (part: string) => [...this.#placed.values()].some(({ names }) => [...names.values()].includes(part));

  async #delete(parts: readonly string[]): Promise<void> {
    const { disk, folder } = this.#options;
    for (const part of parts) await disk.rm(path.join(folder, part), { recursive: true, force: true });
    for (const part of parts) this.#stamps.delete(part);
  }

  async #readConfigs(files: Revision['files'], leased: readonly LeasedFile[]): Promise<Result<Configs, string>> {
    const configs = new Map<string, ModelConfig>();
    for (const [at, { name }] of files.entries()) {
      if (!isConfig(name)) continue;
      const parsed = parseText(await this.#options.disk.readFile(leased[at]?.path ?? '', 'utf8'));
      if (!parsed.ok) return no(`${name}: ${parsed.refusal.reason}`);
      configs.set(partOf(name), parsed.value);
    }
    return ok(configs);
  }

  async #copy(
    { digest, files }: Revision,
    leased: readonly LeasedFile[],
    configs: Configs,
  ): Promise<Result<PlacedRevision, FetchRefusal>> {
    const { disk, folder, store } = this.#options;
    const names = engineNames(files, configs);
    const missing = new Map<string, string>();
    for (const [part, name] of names) if (!(await this.#isWhole(name))) missing.set(part, name);
    const unfinished = path.join(this.#unfinished, randomUUID());
    try {
      for (const [at, { name, digest: file }] of files.entries()) {
        const part = missing.get(partOf(name));
        if (part === undefined) continue;
        const target = path.join(unfinished, part + name.slice(name.indexOf('/')));
        await disk.mkdir(path.dirname(target), { recursive: true });
        await disk.copyFile(leased[at]?.path ?? '', target, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
        // Verified before the copy and unchanged after it: the copy is of verified bytes.
        if (!(await store.verify(file)))
          return refuse(digest, 'digest_mismatch', `${name} changed while it was copied`);
        const config = isConfig(name) && configs.get(partOf(name));
        if (config) {
          await disk.chmod(target, 0o600);
          await disk.writeFile(target, renameConfig(config, partOf(name), names));
        }
        await disk.chmod(target, 0o444);
      }
      const fresh = [...missing.values()];
      await this.#delete(fresh);
      for (const part of fresh) {
        await disk.rename(path.join(unfinished, part), path.join(folder, part));
        this.#stamps.set(part, await stampRevision(folder, [part], [], disk));
      }
      const unchanged = async () =>
        (await Promise.all([...names.values()].map((part) => this.#isWhole(part)))).every(Boolean);
      const placed = { repository: folder, names, unchanged };
      this.#placed.set(digest, placed);
      return ok(placed);
    } finally {
      await disk.rm(unfinished, { recursive: true, force: true });
    }
  }

  /** Reports whether a part is in the repository with the files that were copied into it, and no others. */
  async #isWhole(part: string): Promise<boolean> {
    const stamp = this.#stamps.get(part);
    const now = await stampRevision(this.#options.folder, [part], [], this.#options.disk).catch(() => undefined);
    return stamp !== undefined && now === stamp;
  }
}

type Configs = ReadonlyMap<string, ModelConfig>;

const refuse = (digest: string, reason: FetchRefusal['reason'], detail: string) =>
  no<FetchRefusal>({ reason, digest, detail });
