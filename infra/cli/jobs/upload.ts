// auricle upload FILE

import { constants, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { createEnvelope } from '../../../shared/seal/envelope.ts';
import { zoneKey } from '../../../shared/seal/zone-key.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { postOnce } from './post-once.ts';
import { realEnv, type UploadEnv } from './upload-env.ts';
import { SendProblem, sendFile, type Target } from './upload-file.ts';
import { uploadState } from './upload-follow.ts';
import { beginJournal, findJournal, type Journal, type JournalName, type StartedUpload } from './upload-journal.ts';
import { formatProblem, printEnd, printUpload } from './upload-print.ts';

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
  world: UploadEnv = realEnv(),
): Promise<Answer> {
  const [file = ''] = given.operands;
  if (given.format !== undefined) {
    const problem = formatProblem(given.format);
    if (problem !== undefined) return wrong(problem);
    if (!given.wait) return wrong('--format needs --wait: it is the format of the printed transcript');
  }
  if (given.keepDays !== undefined && !/^\d{1,4}$/.test(given.keepDays)) return wrong('--keep-days N: a whole number');
  const facts = await look(file);
  if (typeof facts === 'string') return wrong(`${file} ${facts}`);
  const { size: bytes, mtimeMs: modified } = facts;
  const request = requestOf(given, file, bytes);
  const name = { edge: given.edge, file: path.resolve(file), bytes, modified, asked: request };
  const before = findJournal(world.folder, name, world.now());
  const waits = before ? await stillWaits(given, headers, before, world) : 'no';
  if (waits === 'no') before?.remove();
  const journal = before && waits !== 'no' ? before : await begin(given, headers, name, world);
  if ('exit' in journal) return journal;
  const { id } = journal.begun;
  const url = `${given.edge}/v1/uploads/${id}`;
  const report = async () => {
    if (given.wait) return printEnd(url, given, headers, world);
    const shown = await printUpload(url, 'GET', headers, world);
    return shown.exit === 0 ? { ...shown, note: `npx auricle uploads wait ${id} prints its transcript` } : shown;
  };
  if (waits === 'taken') {
    journal.remove();
    return report();
  }
  try {
    const target = targetOf(journal.begun);
    const progress = (sent: number, of: number) => world.print(`${id}: sent ${Math.floor((sent / of) * 100)} %`);
    await sendFile(file, bytes, { target, journal, fetch: world.fetch, pause: world.pause, progress });
    journal.remove();
  } catch (error) {
    if (!(error instanceof SendProblem)) throw error;
    if (!error.again) journal.remove();
    const text = `${file} was not sent: ${error.message}${error.again ? '; run the same command to go on' : ''}`;
    return { exit: 1, text, value: { error: { message: text }, id } };
  }
  return report();
}

/** Returns the facts of a readable file, or why it cannot be sent. */
async function look(file: string): Promise<Stats | string> {
  try {
    const facts = await stat(file);
    if (facts.isDirectory()) return 'is a folder: name a file in it';
    if (!facts.isFile()) return 'is not a file';
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

/** Returns the body of the request. */
function requestOf(given: Arguments, file: string, bytes: number): Record<string, unknown> {
  const { model, language, plain, zone, callback, keepDays } = given;
  return {
    model,
    ...(language !== undefined && { language }),
    filename: path.basename(file),
    sealed: !plain,
    // The size of a sealed file depends on the tenant, which only the edge knows.
    ...(plain && { bytes }),
    ...(zone !== undefined && { zone }),
    ...(callback !== undefined && { callback }),
    ...(keepDays !== undefined && { keep_days: Number(keepDays) }),
  };
}

/** Reports whether an interrupted run can resume (`yes`), or has sent everything (`taken`). */
async function stillWaits(
  given: Arguments,
  headers: Record<string, string>,
  { begun }: Journal,
  world: UploadEnv,
): Promise<'yes' | 'no' | 'taken'> {
  const response = await world.fetch(`${given.edge}/v1/uploads/${begun.id}`, { headers });
  // The state is unknown, so the journal stays.
  if (response.status >= 500) throw new Error('busy', { cause: new Error(`it answers ${response.status}`) });
  const { data } = uploadState.safeParse(await response.json());
  if (data?.status === 'granted') return 'yes';
  return data === undefined || ['refused', 'cancelled', 'expired'].includes(data.status) ? 'no' : 'taken';
}

async function begin(
  given: Arguments,
  headers: Record<string, string>,
  name: JournalName,
  world: UploadEnv,
): Promise<Journal | Answer> {
  const response = await postOnce(`${given.edge}/v1/uploads`, headers, name.asked, world);
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

function targetOf({ url, headers, envelope }: StartedUpload): Target {
  const { head, baseKey, suite } = envelope ?? {};
  if (head === undefined || baseKey === undefined || suite === undefined) return { url, headers, envelope: undefined };
  return { url, headers, envelope: { head: bytesOf(head), baseKey: bytesOf(baseKey), suite } };
}
