// auricle model push: registers a signed revision and brings its files into the model store.
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { type RevisionRow, revisionRow } from '../../../shared/registry/contract.ts';
import {
  type FileList,
  type FilePlan,
  fileList,
  filePlan,
  type ModelFile,
} from '../../../shared/registry/model-files.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import { bundle as bundleSchema } from '../../../shared/registry/signature-bundle.ts';
import { readPayload } from '../../../shared/registry/signature-envelope.ts';
import { readManifest, SIGNATURE_FILES } from '../../../shared/registry/signature-manifest.ts';
import { type Answer, impossible, wrong } from '../answer.ts';
import { realEnv, type UploadEnv } from '../jobs/upload-env.ts';
import { SendProblem, sendFile } from '../jobs/upload-file.ts';
import { beginJournal, findJournal } from '../jobs/upload-journal.ts';
import type { Arguments } from '../options.ts';
import { openFolder, signatureOf } from './files.ts';
import { type Caller, callRegistry, type Headers, readJsonFile } from './registry.ts';

/** Files that are sent beside each other. */
const SENT_AT_ONCE = 4;
/** Steps of the back-off between two looks at files that the functions hash: 0.5 s to 4 s. */
const LOOK_STEPS = { first: 1, last: 4 };
/** Time without a finished file after which the push gives up, ms. */
const HASH_MS_MAX = 300_000;

/** A file of the revision, and its place on this machine. */
interface LocalFile extends ModelFile {
  readonly place: string;
}

/** `auricle model push FOLDER [PART…]`: an interrupted push resumes, and stored files are not sent again. */
export async function pushModel(given: Arguments, headers: Headers): Promise<Answer> {
  const [, folder = '', ...parts] = given.operands;
  const model = given.onlyModel ?? parts[0] ?? path.basename(path.resolve(folder));
  const signature = (['sha256', 'sm3'] as const).map((hash) => signatureOf(folder, parts, hash)).find(existsSync);
  if (signature === undefined) return wrong(`there is no signature in ${folder}: sign it first`);
  const bundle = readJsonFile(signature);
  if ('exit' in bundle) return bundle;
  const pushed = await pushRevision({ edge: given.edge, headers }, { model, folder, parts, bundle: bundle.value });
  if ('exit' in pushed) return pushed;
  const { revision, files, sent, bytes } = pushed.value;
  return { exit: 0, text: `${revision}\n${files} files stored, ${sent} sent (${bytes} bytes)`, value: pushed.value };
}

/** A signed revision in a folder, or in these parts of a repository. */
export interface SignedFolder {
  readonly model: string;
  readonly folder: string;
  readonly parts: readonly string[];
  /** Signature of the files. */
  readonly bundle: unknown;
}

/** Registers a signed revision and returns once the store has all of its files, or the answer for a refusal. */
export async function pushRevision(
  caller: Caller,
  { model, folder, parts, bundle }: SignedFolder,
  world: UploadEnv = realEnv(),
): Promise<{ readonly value: RevisionRow & Pushed } | Answer> {
  const files = await hashFiles(folder, parts);
  const revision = digestOfFiles(files);
  const route = `${encodeURIComponent(model)}/revisions`;
  const signed = signedRevision(bundle);
  if (signed !== revision)
    return wrong(
      `the files make ${revision}, and ${signed ?? 'no revision'} was signed: name the PARTs that were signed, or sign again`,
    );
  const registered = await callRegistry(caller, route, revisionRow, { method: 'POST', body: { bundle } });
  if ('exit' in registered) return registered;
  const listed = { files: files.map(({ name, digest, bytes }) => ({ name, digest, bytes })) };
  const store = `${route}/${revision}/files`;
  const first = await callRegistry(caller, store, filePlan, { method: 'POST', body: listed });
  if ('exit' in first) return first;
  try {
    await sendMissing(caller.edge, files, first.value, world);
  } catch (error) {
    if (!(error instanceof SendProblem)) throw error;
    return impossible(`${error.message}; run the same command to go on`);
  }
  const look = () => callRegistry(caller, store, fileList);
  const problem = first.value.complete ? undefined : await untilStored(look, world);
  if (problem) return problem;
  const missing = first.value.files.filter(({ state }) => state === 'missing');
  const bytes = missing.reduce((sum, one) => sum + one.bytes, 0);
  return { value: { ...registered.value, files: files.length, sent: missing.length, bytes } };
}

/** Returns the revision that a signature names; `undefined` for what is no signature of a revision. */
function signedRevision(sent: unknown): string | undefined {
  const read = bundleSchema.safeParse(sent);
  const manifest = read.success
    ? readManifest(readPayload(Buffer.from(read.data.dsseEnvelope.payload, 'base64')))
    : undefined;
  return manifest?.revision;
}

/** Numbers of files of the revision and of those sent, and the bytes of these. */
interface Pushed {
  readonly files: number;
  readonly sent: number;
  readonly bytes: number;
}

async function hashFiles(folder: string, parts: readonly string[]): Promise<LocalFile[]> {
  const opened = openFolder(folder, parts);
  const files: LocalFile[] = [];
  for (const name of (await opened.list()).filter((file) => !SIGNATURE_FILES.includes(file))) {
    const place = path.join(folder, name);
    const hash = opened.hash('sha256');
    for await (const chunk of opened.open(name)) hash.update(chunk);
    files.push({ name, place, digest: hash.finish(), bytes: (await stat(place)).size });
  }
  return files;
}

/** Sends the missing files in blocks. Rejects with `SendProblem`. */
async function sendMissing(edge: string, files: readonly LocalFile[], plan: FilePlan, world: UploadEnv): Promise<void> {
  const missing = plan.files.flatMap(({ digest, url }) => {
    const file = url !== undefined && files.find((one) => one.digest === digest);
    return file ? [{ ...file, url }] : [];
  });
  const total = missing.reduce((sum, { bytes }) => sum + bytes, 0);
  let before = 0;
  let shown = -1;
  const show = () => {
    const percent = Math.floor((before / Math.max(1, total)) * 100);
    if (percent < shown + 10 && percent < 100) return;
    shown = percent;
    world.print(`sent ${percent} % of ${total} bytes`);
  };
  const waiting = missing.values();
  const send = async () => {
    for (const { place, bytes, digest, url } of waiting) {
      // The place of the file is its digest: a file with other bytes has another journal.
      const name = { edge, file: digest, bytes, modified: 0, asked: { push: true } };
      const begun = { id: digest, url, headers: plan.headers, expires: plan.expires };
      const journal = findJournal(world.folder, name, world.now()) ?? beginJournal(world.folder, name, begun);
      let sent = 0;
      const progress = (now: number) => {
        before += now - sent;
        sent = now;
        show();
      };
      const target = { url: journal.begun.url, headers: plan.headers, envelope: undefined };
      const sending = { target, journal, fetch: world.fetch, pause: world.pause, progress };
      await sendFile(place, bytes, sending).catch((error: unknown) => {
        // The next run asks for another address.
        if (error instanceof SendProblem && !error.again) journal.remove();
        throw error;
      });
      journal.remove();
    }
  };
  await Promise.all(Array.from({ length: SENT_AT_ONCE }, send));
}

/** Waits until the store has every file. Returns an answer if it removed one, or finishes none for HASH_MS_MAX. */
export async function untilStored(
  look: () => Promise<{ readonly value: FileList } | Answer>,
  { now, pause, print }: Pick<UploadEnv, 'now' | 'pause' | 'print'>,
): Promise<Answer | undefined> {
  let progress = { at: now(), open: Number.POSITIVE_INFINITY };
  for (let step = LOOK_STEPS.first; ; step += 1) {
    const found = await look();
    if ('exit' in found) return found;
    const { complete, files } = found.value;
    if (complete) return undefined;
    const lost = files.find(({ state }) => state === 'missing');
    if (lost) return impossible(`the store refused ${lost.digest}: other bytes arrived; push again`);
    const open = files.filter(({ state }) => state !== 'stored');
    const bytes = open.reduce((sum, one) => sum + one.bytes, 0);
    const waiting = `the store hashes ${open.length} of ${files.length} files (${bytes} bytes)`;
    if (open.length < progress.open) {
      progress = { at: now(), open: open.length };
      print(waiting);
    }
    if (now() - progress.at > HASH_MS_MAX)
      return impossible(`${waiting} and has finished none for ${HASH_MS_MAX / 60_000} minutes; push again later`);
    await pause(Math.min(step, LOOK_STEPS.last));
  }
}
