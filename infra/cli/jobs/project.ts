// auricle project: synthesizes text. Seals the text here unless --plain is given.

import { isUtf8 } from 'node:buffer';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { putFailure } from '../../../shared/jobs/blocks.ts';
import { documentBlocks, encodeDocument, readDocument } from '../../../shared/jobs/document.ts';
import { jsonOf } from '../../../shared/json-text.ts';
import { publicText } from '../../../shared/refusal.ts';
import { sealSmall } from '../../../shared/seal/envelope-stream.ts';
import { zoneKey } from '../../../shared/seal/zone-key.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { postOnce } from './post-once.ts';
import { editProject } from './project-edit.ts';
import { saveDocuments } from './project-save.ts';
import { type ProjectState, progressOf, projectLine, projectState } from './project-state.ts';
import { realEnv, type UploadEnv } from './upload-env.ts';
import { follow, printChanges } from './upload-follow.ts';
import { listLine } from './upload-print.ts';

/** Tries of submitting a project: its id makes them idempotent. */
const PROJECT_TRIES_MAX = 6;

type Headers = Record<string, string>;

export async function project(given: Arguments, headers: Headers, world: UploadEnv = realEnv()): Promise<Answer> {
  const [what = '', id = ''] = given.operands;
  const url = `${given.edge}/v1/projects/${encodeURIComponent(id)}`;
  if (what === 'list') return list(given, headers, world);
  // Any other first word is the name of a file.
  if (id === '') return make(what, given, headers, world);
  if (what === 'delete') return fetchState(url, 'DELETE', headers, world);
  if (what === 'rerun') return fetchState(`${url}/rerun`, 'POST', headers, world);
  if (what === 'save') return saveWhenDone(url, { ...given, wait: true }, headers, world);
  return what === 'edit' ? edit(url, given, headers, world) : fetchState(url, 'GET', headers, world);
}

const page = z.object({ data: z.array(projectState.extend({ created: z.string() })) });

/** The newest ones. */
async function list(given: Arguments, headers: Headers, world: UploadEnv): Promise<Answer> {
  const response = await world.fetch(`${given.edge}/v1/projects`, { headers });
  if (!response.ok) return refused(response);
  const value = await response.json();
  const lines = page.parse(value).data.map((one) => listLine(one, progressOf(one)));
  return { exit: 0, text: lines.length > 0 ? lines.join('\n') : 'no projects', value };
}

const text = z.string().optional();
/** A JSON file: a body of `POST /v1/projects` with at least the documents. */
const projectFile = z.looseObject({
  documents: z.array(z.strictObject({ title: text, text, blocks: documentBlocks.optional() })).min(1),
});

const made = projectState.extend({
  status_url: z.string(),
  grants: z.array(z.object({ id: z.string(), url: z.url(), headers: z.record(z.string(), z.string()) })).optional(),
});

async function make(file: string, given: Arguments, headers: Headers, world: UploadEnv): Promise<Answer> {
  const bytes = await readFile(file).catch(() => undefined);
  if (!bytes) return wrong(`${file} cannot be read`);
  if (!isUtf8(bytes)) return wrong(`${file} is not UTF-8 text`);
  if (given.out !== undefined && !(await makeFolder(given.out)))
    return wrong(`${given.out} is not a folder and cannot be created`);
  const content = bytes.toString('utf8');
  const described = describe(file, content, given);
  if (typeof described === 'string') return wrong(`${file}: ${described}`);
  const response = await postOnce(`${given.edge}/v1/projects`, headers, described.body, world);
  if (!response.ok) return refused(response);
  const begun = made.parse(await response.json());
  for (const [index, bytes] of described.files.entries()) {
    const problem = await put(bytes, index, begun, world);
    if (problem !== undefined) return { exit: 1, text: problem, value: { error: { message: problem }, id: begun.id } };
  }
  const { grants: _, ...shown } = begun;
  if (given.wait || given.out !== undefined)
    return saveWhenDone(`${given.edge}/v1/projects/${begun.id}`, given, headers, world);
  return { exit: 0, text: projectLine(begun), value: shown };
}

/** Makes the output folder before anything is sent. */
const makeFolder = (folder: string): Promise<boolean> =>
  mkdir(folder, { recursive: true }).then(
    () => true,
    () => false,
  );

/** Returns the request and the plaintext of each sealed document, or why the file is invalid. */
function describe(file: string, content: string, given: Arguments): { body: object; files: Uint8Array[] } | string {
  const { model, language, voice, rate, zone, callback, plain } = given;
  const named = {
    model,
    ...(language !== undefined && { language }),
    ...(voice !== undefined && { voice }),
    ...(rate !== undefined && { rate: Number(rate) }),
    ...(zone !== undefined && { zone }),
    ...(callback !== undefined && { callback }),
  };
  const title = path.basename(file, path.extname(file));
  let described: z.infer<typeof projectFile> = { documents: [{ title, text: content }] };
  if (path.extname(file).toLowerCase() === '.json') {
    const parsed = projectFile.safeParse(jsonOf(content));
    if (!parsed.success) return 'it is not a project: it needs documents with text or blocks';
    described = parsed.data;
  }
  if (plain) return { body: { ...named, ...described, sealed: false }, files: [] };
  const files: Uint8Array[] = [];
  for (const { text: words, blocks } of described.documents) {
    const read = readDocument(words ?? blocks ?? '');
    if (!read.ok) return publicText(read.refusal);
    files.push(encodeDocument(read.value));
  }
  const documents = described.documents.map((one) => ({
    ...(one.title !== undefined && { title: one.title }),
    content_type: 'application/json',
  }));
  return { body: { ...named, ...described, documents, sealed: true }, files };
}

/** Seals and uploads one document. Returns what failed. */
async function put(
  bytes: Uint8Array,
  index: number,
  { tenant, zone_key: key, grants = [] }: z.infer<typeof made>,
  { fetch: send, pause }: UploadEnv,
): Promise<string | undefined> {
  const grant = grants[index];
  const parsed = zoneKey.safeParse(key);
  if (!grant || !parsed.success) return 'the edge named no address or no key for a document';
  const body = await sealSmall({ tenant, upload: grant.id, name: 'upload' }, parsed.data, bytes);
  let why = '';
  for (let attempt = 1; attempt <= PROJECT_TRIES_MAX; attempt += 1) {
    if (attempt > 1) await pause(attempt);
    const failure = await putFailure(send(grant.url, { method: 'PUT', headers: grant.headers, body }));
    if (!failure) return undefined;
    why = failure.detail;
    if (!failure.retryable) break;
  }
  return `document ${index} was not sent: ${why}`;
}

async function fetchState(url: string, method: string, headers: Headers, { fetch: send }: UploadEnv): Promise<Answer> {
  const response = await send(url, { method, headers });
  if (!response.ok) return refused(response);
  const value = projectState.parse(await response.json());
  return { exit: 0, text: projectLine(value), value };
}

async function edit(url: string, given: Arguments, headers: Headers, world: UploadEnv): Promise<Answer> {
  const [, , document = '', segment = '', words = ''] = given.operands;
  const change = { document, segment, text: words, plain: given.plain };
  const done = await editProject(url, change, headers, world.fetch);
  if ('exit' in done) return done;
  if (given.wait || given.out !== undefined) return saveWhenDone(url, given, headers, world);
  return { exit: 0, text: projectLine(done.edited), value: done.edited };
}

/** Waits for the end and saves the audio. */
async function saveWhenDone(url: string, given: Arguments, headers: Headers, world: UploadEnv): Promise<Answer> {
  const { fetch: send, pause } = world;
  const print = printChanges(world.print);
  const changed = (now: ProjectState) => print(projectLine(now));
  const end = await follow(url, headers, { fetch: send, pause, changed }, projectState);
  if (end instanceof Response) return refused(end);
  if (end.status !== 'done') return { exit: 1, text: projectLine(end), value: end };
  if (given.out === undefined) return { exit: 0, text: projectLine(end), value: end };
  changed(end);
  const saved = await saveDocuments(end, given.out, { url, headers, fetch: send });
  if ('exit' in saved) return saved;
  return { exit: 0, text: saved.files.join('\n'), value: { ...end, files: saved.files } };
}
