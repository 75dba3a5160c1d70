// auricle upload FOLDER, and several FILEs: the same steps as for one file, a few files at a time.
import { randomUUID } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { printable } from '../../../shared/printable.ts';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import type { Screen } from '../progress.ts';
import { createProgress } from '../progress.ts';
import { upload } from './upload.ts';
import type { UploadEnv } from './upload-env.ts';
import { type UploadState, uploadState } from './upload-follow.ts';
import { printEnd } from './upload-print.ts';

/** Files on their way at once: each buffers one block of its file. */
const AT_ONCE = 8;
/** Requests of one file that the edge may refuse for now, before the file counts as failed. */
const TRIES = 6;

/** A file and its upload, or the reason why there is none. */
interface Sent {
  readonly file: string;
  readonly answer: Answer;
  readonly state: UploadState | undefined;
}

/** Reports whether the operands name more than one file. */
export async function namesMany(operands: readonly string[]): Promise<boolean> {
  const [first = '', second] = operands;
  return second !== undefined || (await isFolder(first));
}

/** Sends all files. The exit code is 1 when one of them was not taken, or with --wait was not transcribed. */
export async function uploadMany(
  given: Arguments,
  headers: Record<string, string>,
  world: UploadEnv,
  screen: Screen,
): Promise<Answer> {
  if (given.format !== undefined) return wrong('--format prints one transcript; with several files, --json has each');
  const files = await listFiles(given.operands);
  if (typeof files === 'string') return wrong(files);
  const progress = createProgress(screen);
  const quiet: UploadEnv = { ...world, print: () => {} };
  let failed = 0;
  const stepAll = async (verb: string, of: readonly Sent[], next: (one: Sent) => Promise<Sent>): Promise<Sent[]> => {
    let done = 0;
    return atOnce(of, async (one) => {
      const after = await next(one);
      done += 1;
      failed += after.answer.exit === 0 ? 0 : 1;
      if (screen.isTTY) progress.show(`${done} of ${of.length} files ${verb}${failed > 0 ? `, ${failed} failed` : ''}`);
      else world.print(lineOf(after));
      return after;
    });
  };
  const begin = files.map((file): Sent => ({ file, answer: wrong('not sent'), state: undefined }));
  const sent = await stepAll('sent', begin, ({ file }) => sendOne({ ...given, wait: false }, file, headers, quiet));
  const taken = sent.filter(({ state }) => state !== undefined);
  const ended = given.wait ? await stepAll('done', taken, (one) => waitForOne(given, one, headers, quiet)) : taken;
  progress.clear();
  return summarise([...ended, ...sent.filter(({ state }) => state === undefined)]);
}

async function isFolder(name: string): Promise<boolean> {
  return (await stat(name).catch(() => undefined))?.isDirectory() === true;
}

/** The named files, and those of named folders, without folders in them and names that begin with a dot. */
async function listFiles(names: readonly string[]): Promise<readonly string[] | string> {
  const files: string[] = [];
  for (const name of names) {
    if (!(await isFolder(name))) {
      files.push(name);
      continue;
    }
    const found = (await readdir(name, { withFileTypes: true }))
      .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
      .map((entry) => path.join(name, entry.name))
      .sort();
    if (found.length === 0) return `${name} has no file`;
    files.push(...found);
  }
  return [...new Set(files)];
}

/** Sends one file. A refusal for now, of a busy edge or a full allowance, is tried again. */
async function sendOne(
  given: Arguments,
  file: string,
  headers: Record<string, string>,
  world: UploadEnv,
): Promise<Sent> {
  // One key over all attempts: an attempt whose outcome is unknown leaves no second upload.
  const keyed = { ...headers, 'idempotency-key': randomUUID() };
  for (let attempt = 1; ; attempt += 1) {
    const { note: _, ...answer } = await upload({ ...given, operands: [file] }, keyed, world).catch(failureOf(file));
    const { status, error } = answer.value as {
      readonly status?: unknown;
      readonly error?: { readonly code?: unknown };
    };
    const running = status === 409 && error?.code === 'idempotency_key_running';
    const later = answer.exit !== 0 && (status === 429 || status === 503 || running);
    if (!later || attempt >= TRIES) return { file, answer, state: stateOf(answer) };
    await world.pause(attempt);
  }
}

async function waitForOne(
  given: Arguments,
  { file, state }: Sent,
  headers: Record<string, string>,
  world: UploadEnv,
): Promise<Sent> {
  const url = `${given.edge}/v1/uploads/${state?.id}`;
  const answer = await printEnd(url, given, headers, world).catch(failureOf(file));
  return { file, answer, state: stateOf(answer) ?? state };
}

/** One file's bug or lost connection leaves the others alone. */
const failureOf =
  (file: string) =>
  (error: unknown): Answer => {
    const text = `${file}: ${error instanceof Error ? error.message : 'no reason given'}`;
    return { exit: 1, text, value: { error: { message: text } } };
  };

const stateOf = ({ value }: Answer): UploadState | undefined => uploadState.safeParse(value).data;

/** Maps in the order of `items`, with `AT_ONCE` calls under way. */
async function atOnce<From, To>(items: readonly From[], map: (item: From) => Promise<To>): Promise<To[]> {
  const results: To[] = [];
  const work = items.entries();
  const walk = async () => {
    for (const [at, item] of work) results[at] = await map(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, walk));
  return results;
}

const lineOf = ({ file, answer, state }: Sent): string =>
  printable(answer.exit === 0 ? `${state?.id}  ${state?.status}  ${file}` : `${file}: ${answer.text}`);

function summarise(all: readonly Sent[]): Answer {
  const failed = all.filter(({ answer }) => answer.exit !== 0);
  const good = all.length - failed.length;
  const count = `${good} of ${all.length} files succeeded${failed.length > 0 ? `, ${failed.length} failed` : ''}`;
  const value = {
    files: all.map(({ file, answer }) => ({ file, ok: answer.exit === 0, ...(answer.value as object) })),
    succeeded: good,
    failed: failed.length,
  };
  const lines = [...all.filter(({ answer }) => answer.exit === 0), ...failed].map(lineOf);
  return { exit: failed.length > 0 ? 1 : 0, text: [...lines, count].join('\n'), value };
}
