// `auricle upload` of folders and several files, against an edge and a store in memory.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readArguments } from '../../../infra/cli/arguments.ts';
import type { UploadEnv } from '../../../infra/cli/jobs/upload-env.ts';
import { namesMany, uploadMany } from '../../../infra/cli/jobs/upload-many.ts';

let folder: string;
let lines: string[];
/** Statuses of grants to come, by file name. */
let refused: Map<string, number[]>;
let open: number;
let most: number;
let grants: string[];
/** Idempotency-Keys of requests, by file name. */
let keys: Map<string, Set<string | null>>;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-cli-many-'));
  mkdirSync(path.join(folder, 'in/deeper'), { recursive: true });
  [lines, refused, open, most, grants, keys] = [[], new Map(), 0, 0, [], new Map()];
});
afterEach(() => rmSync(folder, { recursive: true }));

const idOf = (number: number) => `01890a5d-ac96-774b-bcce-${String(number).padStart(12, '0')}`;
const stateOf = (id: string, status: string) => ({ id, status, seq: 1, pieces: { total: 1, done: 1 } });

function answer(url: URL, init: RequestInit): Response {
  if (url.hostname === 'store.test') return new Response('', { status: 201 });
  if (init.method === 'POST') {
    const { filename } = JSON.parse(String(init.body)) as { filename: string };
    const sent = keys.get(filename) ?? new Set();
    keys.set(filename, sent.add(new Headers(init.headers).get('idempotency-key')));
    const status = refused.get(filename)?.shift();
    if (status !== undefined) return Response.json({ error: { code: 'no', message: 'Not now.' } }, { status });
    grants.push(filename);
    const id = idOf(grants.length);
    const grant = { id, url: `http://store.test/${id}?sig=x`, headers: {}, tenant: 'dev', sealed: false };
    return Response.json({ ...grant, expires: '2030-01-01T00:00:00.000Z' }, { status: 201 });
  }
  const id = url.pathname.split('/')[3] ?? '';
  if (url.pathname.endsWith('/events'))
    return new Response(`id: 1\nevent: end\ndata: ${JSON.stringify(stateOf(id, 'done'))}\n\n`);
  if (url.pathname.endsWith('/transcript')) return Response.json({ text: `words of ${id}` });
  return Response.json(stateOf(id, 'uploaded'));
}

const world = (): UploadEnv => ({
  fetch: async (input, init = {}) => {
    const url = new URL(String(input));
    if (init.method === 'POST') open += 1;
    most = Math.max(most, open);
    await new Promise((settle) => setImmediate(settle));
    if (url.hostname === 'store.test' && url.search.includes('comp=blocklist')) open -= 1;
    const response = answer(url, init);
    if (init.method === 'POST' && !response.ok) open -= 1;
    return response;
  },
  now: () => Date.UTC(2026, 0, 1),
  pause: async () => {},
  folder: path.join(folder, 'journals'),
  print: (line) => lines.push(line),
});

function write(...names: string[]): string {
  for (const name of names) writeFileSync(path.join(folder, 'in', name), name);
  return path.join(folder, 'in');
}

function go(words: string[], isTTY = false) {
  const given = readArguments(['upload', '--edge', 'http://edge.test', '--plain', ...words]);
  if ('problem' in given) throw new Error(given.problem);
  return uploadMany(given, { authorization: 'Bearer t' }, world(), { isTTY, write: (text) => lines.push(text) });
}

describe('C11: auricle upload FOLDER', () => {
  it('sends its files, at most eight at a time, and no others', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `call-${String(at).padStart(2, '0')}.wav`);
    const { exit, text, value } = await go([write(...names, '.hidden', 'deeper/none.wav')]);
    expect([exit, grants.toSorted()]).toEqual([0, names]);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(8);
    expect(text.split('\n').at(-1)).toBe('20 of 20 files succeeded');
    expect(value).toMatchObject({ succeeded: 20, failed: 0 });
    expect(value).toHaveProperty('files.0.file', path.join(folder, 'in', 'call-00.wav'));
    expect(lines).toHaveLength(20);
  });

  it('ends with 1 and names the files that failed', async () => {
    refused.set('b.wav', [413]);
    const { exit, text } = await go([write('a.wav', 'b.wav', 'c.wav')]);
    const failure = text.split('\n').slice(-2);
    expect([exit, grants.length]).toEqual([1, 2]);
    expect(failure[0]).toBe(`${path.join(folder, 'in', 'b.wav')}: 413: Not now. (no)`);
    expect(failure[1]).toBe('2 of 3 files succeeded, 1 failed');
  });

  it('C10 prints the control characters of a name as text', async () => {
    const { text } = await go([write('a\n\u001b[31mred.wav')]);
    expect(text.split('\n')).toHaveLength(2);
    expect([text, ...lines].join('')).not.toContain('\u001b');
    expect(text).toContain('a\\u{a}\\u{1b}[31mred.wav');
  });

  it('T4 A8 tries a file again that the edge refuses for now, with the same key', async () => {
    refused.set('a.wav', [503, 503, 503, 429]);
    expect(await go([write('a.wav', 'b.wav')])).toMatchObject({ exit: 0 });
    expect(grants.toSorted()).toEqual(['a.wav', 'b.wav']);
    const [[a, ...others] = [], [b] = []] = [keys.get('a.wav'), keys.get('b.wav')];
    expect([others, a === b, typeof a]).toEqual([[], false, 'string']);
  });

  it('waits for all transcripts with --wait', async () => {
    const { exit, value } = await go([write('a.wav', 'b.wav'), '--wait']);
    expect(exit).toBe(0);
    const wordsOf = (name: string) => `words of ${idOf(grants.indexOf(name) + 1)}`;
    expect(value).toMatchObject({ files: [{ text: wordsOf('a.wav') }, { text: wordsOf('b.wav') }] });
  });

  it('shows one line of progress on a terminal', async () => {
    await go([write('a.wav', 'b.wav')], true);
    expect(lines.join('')).toMatch(/^\r\S*1 of 2 files sent/);
    expect(lines.join('')).not.toContain('\n');
  });

  it('refuses a folder without files, and --format', async () => {
    expect(await go([path.join(folder, 'in')])).toMatchObject({ exit: 2, text: `${folder}/in has no file` });
    expect((await go([write('a.wav'), '--wait', '--format', 'srt'])).exit).toBe(2);
  });
});

it('takes a folder and several files as many, one file as one', async () => {
  const a = path.join(write('a.wav'), 'a.wav');
  expect(await Promise.all([namesMany([folder]), namesMany([a, a]), namesMany([a])])).toEqual([true, true, false]);
});
