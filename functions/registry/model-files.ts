// The model store: files of revisions by digest. A file counts once a function has hashed it; the version that was
// hashed is recorded, so that bytes written later through an address that is still valid are never handed out.
import { fileHeaders } from '../../shared/jobs/blocks.ts';
import { refuse } from '../../shared/refusal.ts';
import {
  type FileAddresses,
  type FileList,
  type FilePlan,
  MODEL_READ_MS,
  MODEL_WRITE_MS,
  type ModelFile,
  modelFile,
} from '../../shared/registry/model-files.ts';
import { digestOfFiles } from '../../shared/registry/revision.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { MODELS, type PlainBlobs } from '../store/blobs.ts';
import type { ModelContext } from './model-context.ts';
import { readModel } from './stored-model.ts';

/** Partition of the rows of files; no model can have this name. */
const FILES = '!files';
const listKey = (revision: string): string => `f!${revision}`;

const wrong = (rule: string) => no(refuse('model_files_invalid', { rule }));

export interface FileContext extends Pick<ModelContext, 'rows' | 'now'> {
  readonly blobs: Pick<PlainBlobs, 'find' | 'digest' | 'list' | 'remove' | 'address'>;
}

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
  const expires = context.now() + MODEL_WRITE_MS;
  const plan = async ([digest, bytes]: [string, number]): Promise<FilePlan['files'][number]> => {
    const state = await stateOf(context, digest);
    if (state !== 'missing') return { digest, bytes, state };
    return { digest, bytes, state, url: await context.blobs.address(MODELS, digest, 'write', expires) };
  };
  const planned = await Promise.all([...sizes].map(plan));
  const complete = planned.every(({ state }) => state === 'stored');
  const change = { type: 'put', key: listKey(revision), value: { files: [...files], complete } } as const;
  if (!(await context.rows.commit(model, [change]))) return no(refuse('models_unavailable'));
  return ok({ revision, complete, files: planned, headers: { ...fileHeaders }, expires });
}

/** Hashes an uploaded file and records its version. Removes a file with other bytes than its name says. */
export async function hashFile(context: FileContext, digest: string): Promise<'stored' | 'removed' | 'changed'> {
  const found = await context.blobs.find(MODELS, digest);
  if (!found) return 'changed';
  const actual = await context.blobs.digest(MODELS, found);
  if (actual === undefined) return 'changed';
  if (actual !== digest) {
    await context.blobs.remove(MODELS, digest);
    return 'removed';
  }
  await context.rows.commit(FILES, [{ type: 'put', key: digest, value: { bytes: found.bytes, etag: found.etag } }]);
  return 'stored';
}

/** Hashes uploaded files whose event was lost. */
export async function hashForgotten(context: FileContext): Promise<void> {
  for (const { name, etag } of await context.blobs.list(MODELS, '')) {
    if ((await context.rows.read(FILES, name))?.value.etag !== etag) await hashFile(context, name);
  }
}

/** Returns the files of a revision as listed, and whether the store has them all. */
export async function listFiles(context: FileContext, model: string, revision: string): Promise<Result<FileList>> {
  const listed = await readList(context, model, revision);
  if (!listed) return no(refuse('model_files_missing', { model }));
  return ok({ revision, ...listed });
}

/** Reports whether the store has every file of a revision, as its last plan found. */
export const hasFiles = async (
  context: Pick<ModelContext, 'rows'>,
  model: string,
  revision: string,
): Promise<boolean> => (await readList(context, model, revision))?.complete === true;

/** Returns addresses that read the files of a complete revision. */
export async function addressFiles(
  context: FileContext,
  model: string,
  revision: string,
): Promise<Result<FileAddresses>> {
  const listed = await readList(context, model, revision);
  if (!listed?.complete) return no(refuse('model_files_missing', { model }));
  const expires = context.now() + MODEL_READ_MS;
  const files: FileAddresses['files'] = [];
  for (const file of listed.files) {
    if ((await stateOf(context, file.digest)) !== 'stored') return no(refuse('model_files_missing', { model }));
    files.push({ ...file, url: await context.blobs.address(MODELS, file.digest, 'read', expires) });
  }
  return ok({ revision, expires, files });
}

async function readList({ rows }: Pick<ModelContext, 'rows'>, model: string, revision: string) {
  const row = await rows.read(model, listKey(revision));
  return row && { files: modelFile.array().parse(row.value.files), complete: row.value.complete === true };
}

/** Returns the state of a file. A version that was never hashed is not stored. */
async function stateOf({ rows, blobs }: FileContext, digest: string): Promise<FilePlan['files'][number]['state']> {
  const found = await blobs.find(MODELS, digest);
  if (!found) return 'missing';
  return (await rows.read(FILES, digest))?.value.etag === found.etag ? 'stored' : 'hashing';
}
