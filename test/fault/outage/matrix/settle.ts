// Comparison of a stack's state after an outage with its callers' knowledge. A problem is a sentence.
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { commandLine } from '../../../../infra/cli/command-line.ts';
import type { Running } from '../../../stack/running.ts';
import { type Kind, type Listed, list, type Made, make } from './batch.ts';
import { type Caller, request } from './callers.ts';

/** Bound on open work, bookings and records after an outage, ms. */
const SETTLED_MS_MAX = 120_000;
const LOOK_MS = 500;
export const SECONDS_OF_DAY = 86_400;
const kinds: readonly Kind[] = ['uploads', 'projects'];

/** Polls until `found` has a value or the time is over. */
async function until<T>(endAt: number, found: () => Promise<T | undefined>): Promise<T | undefined> {
  for (;;) {
    const value = await found();
    if (value !== undefined || Date.now() > endAt) return value;
    await pause(LOOK_MS);
  }
}

const listSurely = (caller: Caller, kind: Kind, endAt: number): Promise<Listed[]> =>
  until(endAt, () => list(caller, kind)).then((all) => all ?? []);

/** Checks that no refused object exists, and that a retry with the same key makes or finds it. */
export async function retryAll(caller: Caller, made: readonly Made[], endAt: number): Promise<string[]> {
  const problems: string[] = [];
  for (const kind of kinds) {
    const own = made.filter((one) => one.kind === kind);
    const known = new Set(own.map(({ id }) => id));
    const before = new Set((await listSurely(caller, kind, endAt)).map(({ id }) => id));
    for (const one of own) {
      if (one.id !== undefined) continue;
      const { refusal } = one;
      await until(endAt, async () => {
        await make(caller, one, () => endAt).catch(() => undefined);
        return one.id;
      });
      if (one.id === undefined) problems.push(`${kind}: a retry is not served: ${one.refusal}`);
      else if (refusal !== undefined && before.has(one.id)) problems.push(`${kind}: refused with ${refusal}, but made`);
      else known.add(one.id);
    }
    const unknown = (await listSurely(caller, kind, endAt)).filter(({ id }) => !known.has(id));
    if (unknown.length > 0) problems.push(`${kind}: ${unknown.length} exist that no caller knows`);
  }
  return problems;
}

export interface Ended {
  readonly problems: string[];
  readonly uploads: readonly Listed[];
}

/** Every upload and project of the tenant is done. */
export async function endAll(caller: Caller, made: readonly Made[], endAt: number): Promise<Ended> {
  const problems: string[] = [];
  let uploads: readonly Listed[] = [];
  for (const kind of kinds) {
    const ids = made.filter((one) => one.kind === kind && one.id !== undefined).map(({ id }) => id);
    let last: Listed[] = [];
    await until(endAt, async () => {
      last = (await list(caller, kind)) ?? last;
      return ids.every((id) => last.some((one) => one.id === id && one.status === 'done')) || undefined;
    });
    const open = ids
      .map((id) => last.find((one) => one.id === id)?.status ?? 'missing')
      .filter((status) => status !== 'done');
    if (open.length > 0) problems.push(`${kind}: ${open.length} of ${ids.length} are ${[...new Set(open)].join(', ')}`);
    if (kind === 'uploads') uploads = last;
  }
  return { problems, uploads };
}

/** Checks that transcripts are those of an undisturbed stack. */
export async function compareTexts(caller: Caller, uploads: readonly Listed[], expected: string): Promise<string[]> {
  let wrong = 0;
  for (const { id, status } of uploads) {
    if (status !== 'done') continue;
    const answer = await until(Date.now() + SETTLED_MS_MAX, async () => {
      const one = await request(caller, `/v1/uploads/${id}/transcript?format=text`);
      return one.status === 200 ? one.text : undefined;
    });
    if (answer?.trim() !== expected) wrong += 1;
  }
  return wrong > 0 ? [`uploads: ${wrong} transcripts differ`] : [];
}

/** Checks that the tenant's allowance has decreased by the seconds of its uploads, each counted once. */
export async function compareAllowance(caller: Caller, uploads: readonly Listed[]): Promise<string[]> {
  const seconds = uploads.reduce((sum, one) => sum + (one.seconds ?? 0), 0);
  const expected = Math.floor(SECONDS_OF_DAY - seconds);
  let left = Number.NaN;
  await until(Date.now() + SETTLED_MS_MAX, async () => {
    const headers = { authorization: `Bearer ${caller.token}` };
    const body = JSON.stringify({ model: 'reference-en', sealed: false, bytes: 1 });
    const answer = await fetch(`${caller.url}/v1/uploads`, { method: 'POST', headers, body });
    await answer.body?.cancel();
    left = Number(answer.headers.get('x-ratelimit-remaining-audio-seconds'));
    return left === expected || undefined;
  });
  return left === expected ? [] : [`allowance: ${left} s are left instead of ${expected} s`];
}

/** Runs `auricle audit verify` for each zone and `auricle audit doctor`. */
export async function checkRecord({ stack, state }: Running): Promise<string[]> {
  process.env.AURICLE_AUDIT = path.join(state, 'seen');
  const auricle = async (...words: string[]) => {
    const given = [...words, '--json', '--edge', stack.url, '--token', stack.token];
    const { exit, out, err } = await commandLine(given, {});
    return { exit, text: (out || err).replaceAll(/\s+/g, ' ') };
  };
  const checks = [['verify', '--zone', 'eu'], ['verify', '--zone', 'us'], ['doctor']];
  const problems: string[] = [];
  for (const check of checks) {
    let last = { exit: -1, text: '' };
    await until(Date.now() + SETTLED_MS_MAX, async () => {
      last = await auricle('audit', ...check);
      return last.exit === 0 || undefined;
    });
    if (last.exit !== 0) problems.push(`audit ${check.join(' ')}: ${failures(last.text)}`);
  }
  return problems;
}

/** Returns the failing checks of the doctor, or the end of any other output. */
const failures = (text: string): string => {
  const found = [...text.matchAll(/"check": "([^"]+)", "detail": "([^"]+)", "outcome": "fail"/g)];
  return found.length > 0 ? found.map(([, check, detail]) => `${check}: ${detail}`).join('; ') : text.slice(-300);
};
