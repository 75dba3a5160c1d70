// The model store: files of revisions by digest. Clients write to a container of uploads. A function hashes each upload
// and copies it into the container of files, to which no address writes.
import { fileHeaders } from '../../shared/jobs/blocks.ts';
import { refuse } from '../../shared/refusal.ts';
import {
  type FileAddresses,
  type FileList,
  type FilePlan,
  MODEL_FILE_BYTES_MAX,
  MODEL_READ_MS,
  MODEL_WRITE_MS,
  type ModelFile,
  modelFile,
} from '../../shared/registry/model-files.ts';
import { digestOfFiles } from '../../shared/registry/revision.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type BlobFacts, MODEL_UPLOADS, MODELS } from '../store/blobs.ts';
import { readPlan } from '../tier/plan.ts';
import { RETURN_MS } from '../tier/prices.ts';
import { noteUse } from '../tier/use.ts';
import type { ModelContext } from './model-context.ts';
import { readSigned } from './register-revision.ts';
import { readModel } from './stored-model.ts';

/** Prefix of the rows that list the files of revisions. */
export const FILES = 'f!';
const listKey = (revision: string): string => `${FILES}${revision}`;

const wrong = (rule: string) => no(refuse('model_files_invalid', { rule }));

export type FileContext = Pick<ModelContext, 'rows' | 'blobs' | 'now' | 'log'>;

/**
 * Records the files of a registered revision and returns the state of each, with an address for every missing
 * one. Refuses files that do not make the revision.
 */
export async function planFiles(
  context: FileContext,
  model: string,
  revision: string,
  files: readonly ModelFile[],
): Promise<Result<FilePlan>> {
  const { registry } = await readModel(context, model);
  if (!Object.hasOwn(registry.revisions, revision)) return no(refuse('revision_unknown', { model }));
  if (digestOfFiles(files) !== revision) return wrong('they make another revision');
  const sizes = new Map(files.map(({ digest, bytes }) => [digest, bytes]));
  if (files.some(({ digest, bytes }) => sizes.get(digest) !== bytes)) return wrong('one digest has two sizes');
  const found = await Promise.all([...sizes].map(([digest]) => find(context, digest)));
  const other = found.find(({ digest, stored }) => stored && stored.bytes !== sizes.get(digest));
  if (other) return wrong(`the stored file ${other.digest} has ${other.stored?.bytes} bytes`);
  const change = { type: 'put', key: listKey(revision), value: { files: [...files] } } as const;
  if (!(await context.rows.commit(model, [change]))) return no(refuse('models_unavailable'));
  const expires = context.now() + MODEL_WRITE_MS;
  const plan = async ({ digest, state }: FoundFile): Promise<FilePlan['files'][number]> => ({
    ...{ digest, bytes: sizes.get(digest) ?? 0, state },
    ...(state === 'missing' && { url: await context.blobs.address(MODEL_UPLOADS, digest, 'write', expires) }),
  });
  const planned = await Promise.all(found.map(plan));
  const complete = planned.every(({ state }) => state === 'stored');
  return ok({ revision, complete, files: planned, headers: { ...fileHeaders }, expires });
}

/**
 * Hashes an upload and copies it into the store. Discards one with other bytes than its name says, and a good one once
 * its copy has succeeded. `open`: the upload is gone, replaced or being copied, and a later run looks again.
 */
export async function hashUpload(context: FileContext, digest: string): Promise<'stored' | 'discarded' | 'open'> {
  const { blobs } = context;
  const upload = await blobs.find(MODEL_UPLOADS, digest);
  if (!upload) return 'open';
  const existing = await blobs.find(MODELS, digest);
  if (existing?.copy === 'pending') return 'open';
  if (!existing || existing.copy === 'failed') {
    const actual = upload.bytes > MODEL_FILE_BYTES_MAX ? 'too long' : await blobs.digest(MODEL_UPLOADS, upload);
    if (actual === undefined) return 'open';
    if (actual !== digest) {
      context.log({ what: 'model upload discarded', detail: `${digest}, ${upload.bytes} bytes` });
      await blobs.discard(MODEL_UPLOADS, upload);
      return 'discarded';
    }
    if (existing) await blobs.discard(MODELS, existing);
    if (!(await blobs.copy(MODEL_UPLOADS, MODELS, upload))) return 'open';
  }
  await blobs.discard(MODEL_UPLOADS, upload);
  return 'stored';
}

/** Hashes uploads whose event was lost, and ends those whose copy was pending. A failure of one keeps no other waiting. */
export async function hashForgotten(context: FileContext): Promise<void> {
  for (const { name } of await context.blobs.list(MODEL_UPLOADS, '')) {
    await hashUpload(context, name).catch((error: unknown) => {
      const detail = `${name}: ${error instanceof Error ? error.name : 'unknown'}`;
      context.log({ what: 'model upload unhashed', detail });
    });
  }
}

/** Returns the listed files of a revision with the state of each, and whether the store has them all. */
export async function listFiles(context: FileContext, model: string, revision: string): Promise<Result<FileList>> {
  const { registry } = await readModel(context, model);
  if (!Object.hasOwn(registry.revisions, revision)) return no(refuse('revision_unknown', { model }));
  const files = await readList(context, model, revision);
  if (!files) return no(refuse('model_files_missing', { model }));
  const found = await Promise.all(files.map(({ digest }) => find(context, digest)));
  const listed = files.map((file, at) => ({ ...file, state: found[at]?.state }));
  const complete = listed.every(({ bytes }, at) => found[at]?.stored?.bytes === bytes);
  return ok({ revision, complete, files: listed });
}

/** Reports whether the store has every file of a revision, in its listed size. */
export async function hasFiles(context: FileContext, model: string, revision: string): Promise<boolean> {
  const files = await readList(context, model, revision);
  return files !== undefined && areStored(context, files);
}

/**
 * Returns the signature of a revision whose files are all stored, and addresses that read them. Counts as a use, which
 * brings archived files back.
 */
export async function addressFiles(
  context: FileContext,
  model: string,
  revision: string,
): Promise<Result<FileAddresses>> {
  const now = context.now();
  const [signed, listed = []] = await Promise.all([
    readSigned(context, model, revision),
    readList(context, model, revision),
  ]);
  const found = await Promise.all(listed.map(({ digest }) => findStored(context, digest)));
  if (!signed || listed.length === 0 || found.includes(undefined)) return no(refuse('model_files_missing', { model }));
  await noteUse(context.rows, model, revision, now);
  const isAway = (at: number) => found[at]?.placed?.tier === 'archive';
  const returns = found.some((_, at) => isAway(at)) ? (await readPlan(context.rows)).plan.returns : undefined;
  const expires = now + MODEL_READ_MS;
  const address = async (file: ModelFile, at: number) =>
    isAway(at)
      ? { ...file, expected: returns?.[file.digest] ?? now + RETURN_MS }
      : { ...file, url: await context.blobs.address(MODELS, file.digest, 'read', expires) };
  return ok({ revision, expires, bundle: signed.bundle, files: await Promise.all(listed.map(address)) });
}

export async function readList({ rows }: Pick<ModelContext, 'rows'>, model: string, revision: string) {
  const row = await rows.read(model, listKey(revision));
  return row && modelFile.array().parse(row.value.files);
}

/** Returns a file of the store; `undefined` while its copy has not succeeded. */
async function findStored({ blobs }: FileContext, digest: string): Promise<BlobFacts | undefined> {
  const found = await blobs.find(MODELS, digest);
  return found?.copy === undefined ? found : undefined;
}

const areStored = async (context: FileContext, files: readonly ModelFile[]): Promise<boolean> => {
  const found = await Promise.all(files.map(({ digest }) => findStored(context, digest)));
  return found.every((stored, at) => stored?.bytes === files[at]?.bytes);
};

/** State of a file, with the facts of a stored one. */
interface FoundFile {
  readonly digest: string;
  readonly state: FilePlan['files'][number]['state'];
  readonly stored?: BlobFacts;
}

/** Looks at the store again where the upload is gone: it is discarded after the copy. A stored file costs one look. */
async function find(context: FileContext, digest: string): Promise<FoundFile> {
  const { blobs } = context;
  const stored = await findStored(context, digest);
  if (stored) return { digest, state: 'stored', stored };
  if (await blobs.find(MODEL_UPLOADS, digest)) return { digest, state: 'hashing' };
  const copied = await blobs.find(MODELS, digest);
  if (copied && !copied.copy) return { digest, state: 'stored', stored: copied };
  return { digest, state: copied?.copy === 'pending' ? 'hashing' : 'missing' };
}
