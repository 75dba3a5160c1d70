// auricle upload FILE, auricle uploads, auricle replay

import { constants, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { limits } from '../../shared/limits.ts';
import { createEnvelope } from '../../shared/seal/envelope.ts';
import { zoneKey } from '../../shared/seal/zone-key.ts';
import { transcriptFormats } from '../../shared/upload/contract.ts';
import { type Answer, refused, wrong } from './answer.ts';
import type { Arguments } from './arguments.ts';
import { SendProblem, sendFile, type Target } from './upload-file.ts';
import { followUpload, type UploadState, uploadState } from './upload-follow.ts';
import {
  type Begun,
  beginJournal,
  findJournal,
  type Journal,
  type JournalName,
  journalFolder,
} from './upload-journal.ts';

export const usage =
  'upload FILE [--model NAME] [--language TAG] [--zone Z] [--callback URL] [--plain] [--wait] [--format json|text|srt|vtt]';

/** What of the world a test may replace. */
export interface UploadWorld {
  readonly fetch: typeof fetch;
  readonly now: () => number;
  readonly pause: (attempt: number) => Promise<void>;
  readonly folder: string;
  readonly say: (line: string) => void;
}

export const realWorld = (): UploadWorld => ({
  fetch,
  now: Date.now,
  pause: (attempt) =>
    new Promise((settle) =>
      setTimeout(settle, Math.min(limits.uploadPauseMs.value, 250 * 2 ** attempt) * (0.5 + Math.random() / 2)),
    ),
  folder: journalFolder(process.env),
  say: (line) => void process.stderr.write(`${line}\n`),
});

const granted = z.object({
  id: z.string(),
  url: z.url(),
  headers: z.record(z.string(), z.string()),
  expires: z.iso.datetime(),
  tenant: z.string(),
  sealed: z.boolean(),
  zone_key: zoneKey.optional(),
});

export async function upload(
  given: Arguments,
  headers: Record<string, string>,
  world: UploadWorld = realWorld(),
): Promise<Answer> {
  const [file, ...more] = given.operands;
  if (file === undefined || more.length > 0) return wrong(`usage: auricle ${usage}`);
  if (given.format !== undefined) {
    const known: readonly string[] = transcriptFormats;
    if (!known.includes(given.format)) return wrong(`--format ${given.format} is not one of ${known.join(', ')}`);
    if (!given.wait) return wrong('--format says how the transcript is printed, which is waited for with --wait only');
  }
  const facts = await look(file);
  if (typeof facts === 'string') return wrong(`${file} ${facts}`);
  const { size: bytes, mtimeMs: modified } = facts;
  const asked = askedOf(given, file, bytes);
  const name = { edge: given.edge, file: path.resolve(file), bytes, modified, asked };
  const before = findJournal(world.folder, name, world.now());
  const waits = before ? await stillWaits(given, headers, before, world) : 'no';
  if (waits === 'no') before?.remove();
  const journal = before && waits !== 'no' ? before : await begin(given, headers, name, world);
  if ('exit' in journal) return journal;
  const { id } = journal.begun;
  const url = `${given.edge}/v1/uploads/${id}`;
  const tell = () => (given.wait ? awaitEnd(url, given, headers, world) : show(url, headers, world));
  if (waits === 'taken') {
    journal.remove();
    return tell();
  }
  try {
    const target = targetOf(journal.begun);
    const progress = (sent: number, of: number) => world.say(`${id}: sent ${Math.floor((sent / of) * 100)} %`);
    await sendFile(file, bytes, { target, journal, fetch: world.fetch, pause: world.pause, progress });
    journal.remove();
  } catch (error) {
    if (!(error instanceof SendProblem)) throw error;
    if (!error.again) journal.remove();
    const text = `${file} was not sent: ${error.message}${error.again ? '; run the same command to go on' : ''}`;
    return { exit: 1, text, value: { error: { message: text }, id } };
  }
  return tell();
}

/** A file that can be sent, or why it cannot. */
async function look(file: string): Promise<Stats | string> {
  try {
    const facts = await stat(file);
    if (facts.isDirectory()) return 'is a folder: name a file in it';
    if (!facts.isFile()) return 'is no file';
    await access(file, constants.R_OK);
    return facts.size === 0 ? 'is empty' : facts;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return UNREADABLE[code ?? ''] ?? `cannot be read (${code ?? 'unknown'})`;
  }
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: 'may not be read by you',
  EPERM: 'may not be read by you',
};

/** What the edge is asked for. */
function askedOf(given: Arguments, file: string, bytes: number): Record<string, unknown> {
  const { model, language, plain, zone, callback } = given;
  return {
    model,
    ...(language !== undefined && { language }),
    filename: path.basename(file),
    sealed: !plain,
    // Of a sealed file the size is known only when it is known whose it is.
    ...(plain && { bytes }),
    ...(zone !== undefined && { zone }),
    ...(callback !== undefined && { callback }),
  };
}

/** Whether a run that was interrupted can be gone on with, or had even sent everything. */
async function stillWaits(
  given: Arguments,
  headers: Record<string, string>,
  { begun }: Journal,
  world: UploadWorld,
): Promise<'yes' | 'no' | 'taken'> {
  const response = await world.fetch(`${given.edge}/v1/uploads/${begun.id}`, { headers });
  // Nothing is known then, and what was noted may still be of use.
  if (response.status >= 500) throw new Error('busy', { cause: new Error(`it answers ${response.status}`) });
  const { data } = uploadState.safeParse(await response.json());
  if (data?.status === 'granted') return 'yes';
  return data === undefined || ['refused', 'cancelled', 'expired'].includes(data.status) ? 'no' : 'taken';
}

async function begin(
  given: Arguments,
  headers: Record<string, string>,
  name: JournalName,
  world: UploadWorld,
): Promise<Journal | Answer> {
  const response = await world.fetch(`${given.edge}/v1/uploads`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(name.asked),
  });
  if (!response.ok) return refused(response);
  const grant = granted.parse(await response.json());
  const { id, url, headers: put, tenant } = grant;
  const first = { id, url, headers: put, expires: Date.parse(grant.expires) };
  if (!grant.sealed) return beginJournal(world.folder, name, first);
  if (!grant.zone_key) return { exit: 1, text: 'the edge named no key to seal to', value: { id } };
  const { head, baseKey, suite } = await createEnvelope({ tenant, upload: id, name: 'upload' }, grant.zone_key);
  const envelope = { head: text(head), baseKey: text(baseKey), suite: suite as 5 };
  return beginJournal(world.folder, name, { ...first, envelope });
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
const bytesOf = (encoded: string) => new Uint8Array(Buffer.from(encoded, 'base64url'));

function targetOf({ url, headers, envelope }: Begun): Target {
  const { head, baseKey, suite } = envelope ?? {};
  if (head === undefined || baseKey === undefined || suite === undefined) return { url, headers, envelope: undefined };
  return { url, headers, envelope: { head: bytesOf(head), baseKey: bytesOf(baseKey), suite } };
}

async function show(url: string, headers: Record<string, string>, world: UploadWorld): Promise<Answer> {
  const response = await world.fetch(url, { headers });
  if (!response.ok) return refused(response);
  const value = uploadState.parse(await response.json());
  return { exit: 0, text: line(value), value };
}

async function awaitEnd(
  url: string,
  given: Arguments,
  headers: Record<string, string>,
  world: UploadWorld,
): Promise<Answer> {
  const { fetch: send, pause } = world;
  const changed = (upload: UploadState) => world.say(line(upload));
  const end = await followUpload(url, headers, { fetch: send, pause, changed });
  if (end instanceof Response) return refused(end);
  if (end.status !== 'done') return { exit: 1, text: line(end), value: end };
  const format = given.format ?? 'json';
  const response = await send(`${url}/transcript?format=${encodeURIComponent(format)}`, { headers });
  if (!response.ok) return refused(response);
  const body = await response.text();
  if (format !== 'json') return { exit: 0, text: body.trimEnd(), value: { ...end, text: body } };
  const transcript = z.looseObject({ text: z.string() }).parse(JSON.parse(body));
  // People get the words and programs everything.
  return {
    exit: 0,
    text: given.format ? body : transcript.text,
    value: { ...end, text: transcript.text, outcome: transcript },
  };
}

function line({ id, status, pieces, error }: UploadState): string {
  const done = pieces.total > 1 ? ` ${pieces.done}/${pieces.total}` : '';
  return `${id}: ${status}${done}${error ? `, ${error.message} (${error.code})` : ''}`;
}
