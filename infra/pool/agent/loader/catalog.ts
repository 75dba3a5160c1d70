// Revisions that the agent knows: those of the mounted repository, and those that the release map names and the model
// store of the functions has.
import path from 'node:path';
import { jsonOf } from '../../../../shared/json-text.ts';
import { type FileAddresses, fileAddresses, fileProofOf } from '../../../../shared/registry/model-files.ts';
import { digestOfFiles } from '../../../../shared/registry/revision.ts';
import { openBundle } from '../../../../shared/registry/signature-bundle.ts';
import type { SignerKey } from '../../../../shared/registry/signature-key.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import type { FunctionsCall } from '../identity/call-functions.ts';
import { type RepositoryModel, readModel } from '../models/models.ts';
import { compareDigests, ruleOf } from '../models/verify-entry.ts';
import type { Disk, ModelFile } from '../store/contract.ts';
import type { FileStore } from '../store/file-store.ts';
import { folderOf } from '../store/folder-source.ts';
import { httpSource } from '../store/http-source.ts';
import { placedName, selectBuild } from './builds.ts';
import { isConfig } from './engine-names.ts';
import type { KnownRevision } from './known-revision.ts';

/** Answer of the functions to a request for the files of a revision. */
const ADDRESSES_MS = 30_000;
/** An address is renewed when it expires so soon. */
const RENEW_MS = 60_000;

export interface ReleasedOptions {
  readonly call: (call: FunctionsCall) => Promise<Response>;
  readonly signers: readonly SignerKey[];
  readonly store: FileStore;
  readonly disk: Disk;
  /** Folder for configurations while they are read. */
  readonly folder: string;
  /** Builds that this agent takes. */
  readonly target: string;
  readonly now: () => number;
}

/** Returns a revision of a mounted repository as the source of its own files. Refuses one without a build for `target`. */
export function mountedRevision(
  repository: string,
  model: RepositoryModel,
  target: string,
): Result<KnownRevision, string> {
  const all = model.files ?? [];
  const build = selectBuild(all, target);
  if (!build.ok) return build;
  const source = folderOf(repository, new Map(all.map(({ digest, name }) => [digest, name])));
  return ok({ digest: model.description.revision, ...build.value, description: describe(model), source });
}

/** Creates a reader of released revisions from the model store. It rejects with the reason while a revision is not there. */
export function createReleased(options: ReleasedOptions) {
  const { call, signers, store, disk, now } = options;

  async function addressesOf(model: string, revision: string): Promise<FileAddresses> {
    const request = JSON.stringify({ v: 1, model, revision });
    const body = { request };
    const response = await call({
      path: '/api/agents/models',
      job: fileProofOf(request),
      body,
      withinMs: ADDRESSES_MS,
    });
    const text = await response.text();
    const read = fileAddresses.safeParse(jsonOf(text));
    if (!response.ok || !read.success) throw new Error(`status ${response.status} of the model store`);
    return read.data;
  }

  async function verify({ bundle, files }: FileAddresses, revision: string): Promise<void> {
    if (digestOfFiles(files) !== revision) throw new Error('its files are not those it names');
    const opened = await openBundle(bundle, signers);
    if (!opened.ok) throw new Error(ruleOf(opened.refusal));
    const { manifest } = opened.value;
    // Digests of another family are not compared: the signed name of the revision covers the SHA-256 of each file.
    if (manifest.revision === revision) return;
    if (manifest.hash !== 'sha256' || manifest.method !== 'files') throw new Error('its signature names no revision');
    const same = compareDigests(manifest, files);
    if (!same.ok) throw new Error(ruleOf(same.refusal));
  }

  return async (model: string, revision: string): Promise<KnownRevision> => {
    let addresses = await addressesOf(model, revision);
    await verify(addresses, revision);
    const source = httpSource(async ({ digest }: ModelFile, renew) => {
      if (renew || addresses.expires - now() < RENEW_MS) addresses = await addressesOf(model, revision);
      const file = addresses.files.find((one) => one.digest === digest);
      if (file?.url === undefined)
        throw new Error(`archived${file?.expected ? ` until ${new Date(file.expected).toISOString()}` : ''}`);
      return file.url;
    });
    const build = selectBuild(addresses.files, options.target);
    if (!build.ok) throw new Error(build.refusal);
    const { files } = build.value;
    const folder = path.join(options.folder, revision.replace(':', '-'));
    for (const file of files.filter((one) => isConfig(placedName(one)))) {
      const fetched = await store.fetch(file, source);
      if (!fetched.ok) throw new Error(fetched.refusal.detail);
      const target = path.join(folder, placedName(file));
      await disk.mkdir(path.dirname(target), { recursive: true });
      await disk.rm(target, { force: true });
      await disk.copyFile(fetched.value.path, target).finally(fetched.value.release);
    }
    const known = { name: model, revision, unchanged: async () => true };
    const read = await readModel({ repository: folder, now: now(), known }, model).finally(() =>
      disk.rm(folder, { recursive: true, force: true }),
    );
    if (!read) throw new Error('it has no parameters of the agent');
    return { digest: revision, ...build.value, description: describe(read), source };
  };
}

/** A model with a streaming half serves streams once it is loaded. */
const describe = ({ description, live }: RepositoryModel) => ({ ...description, ...(live && { live: true }) });
