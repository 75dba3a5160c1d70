// Life of a revision by the command line against a running stack: files, gates, all traffic, and back.
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { z } from 'zod';
import { modelUuid } from '../../edge/protocol/deepgram-model.ts';
import type { listedPool } from '../../edge/routing/list-pools.ts';
import type { Answer } from '../../infra/cli/answer.ts';
import { readArguments } from '../../infra/cli/arguments.ts';
import { commandLine } from '../../infra/cli/command-line.ts';
import { model } from '../../infra/cli/models/model.ts';
import { pools } from '../../infra/local/pools.ts';
import { ROOT } from '../../infra/local/root.ts';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { readBehind, readStable } from '../demo/fleet.ts';
import { forCanary, forGrey, quality, rates, runAt } from '../shared/registry/people.ts';
import { readEntries } from './audit-record.ts';
import type { Clip } from './clips.ts';
import { liveSound, pieces } from './live-sound.ts';
import { shared } from './running.ts';

let state: string;
let stack: Stack;
/** Token of a caller in both zones: a request that one pool fails is repeated at the other. */
let token: string;
/** Revisions that the pools serve before the first release. */
let mounted: string[];
beforeAll(async () => {
  state = mkdtempSync(path.join(os.tmpdir(), 'auricle-model-'));
  stack = await startStack({ port: 0, state });
  token = await shared({ stack, state }).mint();
  const { data } = (await ask('/v1/pools')) as { data: z.infer<typeof listedPool>[] };
  const served = data.flatMap(({ models }) => models.filter(({ name }) => name === 'reference-en'));
  mounted = served.map((one) => one.revision);
});
afterAll(async () => {
  await stack?.stop();
  rmSync(state, { recursive: true, force: true });
});

/** Runs the command line without a process for each command. */
async function auricle(...words: string[]): Promise<Answer> {
  const given = readArguments(['model', ...words, '--edge', stack.url]);
  if ('problem' in given) throw new Error(given.problem);
  return model(given, { authorization: `Bearer ${stack.token}` });
}

const keyOf = (name: string) => ['--key', path.join(state, 'identity', 'signers', `${name}.pem`)];

function evidence(name: string, pieces: unknown): string[] {
  const file = path.join(state, `${name}.json`);
  writeFileSync(file, JSON.stringify(pieces));
  return ['--evidence', file];
}

/** Registers a revision and returns its digest. */
async function register(content: string): Promise<string> {
  const folder = path.join(state, `model-${content}`);
  mkdirSync(path.join(folder, '1'), { recursive: true });
  writeFileSync(path.join(folder, 'config.pbtxt'), `name: "${content}"`);
  writeFileSync(path.join(folder, '1', 'model.onnx'), content);
  expect(await auricle('sign', folder, ...keyOf('author'))).toMatchObject({ exit: 0 });
  expect(await auricle('verify', folder, ...keyOf('author'))).toMatchObject({ exit: 0 });
  const { exit, value } = await auricle('push', folder, '--model', 'reference-en');
  expect(exit).toBe(0);
  return (value as { revision: string }).revision;
}

const promote = (revision: string, signer: string, ...more: string[]) =>
  auricle('promote', 'reference-en', revision.slice(7, 19), ...keyOf(signer), ...more);

/** Takes a revision through all gates but the last signature. */
async function promoteToLast(revision: string): Promise<Answer> {
  const steps = [forGrey(), forCanary(), ...[0, 1, 2, 3].map((at) => [rates(runAt(at, 300, 0, 0))])];
  for (const [at, pieces] of steps.entries()) {
    const answered = await promote(revision, 'reviewer', ...evidence(`step-${at}`, pieces));
    expect(answered, answered.text).toMatchObject({ exit: 0, value: { missing: 0 } });
  }
  return promote(revision, 'reviewer', ...evidence('last', [rates(runAt(4, 300, 5, 60))]));
}

it('C7, A15, T1: signed, through five gates to full traffic, and rolled back', {
  // Some twenty commands, each a process.
  timeout: 60_000,
}, async () => {
  const first = await register('one');
  const waits = await promoteToLast(first);
  expect(waits).toMatchObject({ exit: 0, value: { missing: 1, signers: ['reviewer'] } });
  const { id } = waits.value as { id: string };
  expect(await auricle('alias', 'reference-en', 'stable', first)).toMatchObject({ exit: 1 });
  expect(await auricle('approve', 'reference-en', id, ...keyOf('author'))).toMatchObject({ value: { missing: 1 } });
  expect(await auricle('approve', 'reference-en', id, ...keyOf('approver'))).toMatchObject({ value: { missing: 0 } });
  expect(await auricle('alias', 'reference-en', 'stable', first)).toMatchObject({ exit: 0 });
  const before = new Date().toISOString();

  const second = await register('two');
  const more = await promoteToLast(second);
  await auricle('approve', 'reference-en', (more.value as { id: string }).id, ...keyOf('approver'));
  expect(await auricle('alias', 'reference-en', 'stable', second)).toMatchObject({ exit: 0 });
  const named = (answered: Answer) =>
    (answered.value as { aliases: { alias: string; revision: string }[] }).aliases.map(({ revision }) => revision);
  expect(named(await auricle('revisions', 'reference-en'))).toEqual([second]);
  expect(named(await auricle('revisions', 'reference-en', '--at', before))).toEqual([first]);
  expect(await auricle('rollback', 'reference-en')).toMatchObject({ exit: 0, value: { revision: first } });
  expect(named(await auricle('revisions', 'reference-en'))).toEqual([first]);

  const file = path.join(state, 'export.json');
  expect(await auricle('export', 'reference-en', '--out', file)).toMatchObject({ exit: 0 });
  const copied = await auricle('register', 'copy-of-it', file);
  expect(copied).toMatchObject({
    exit: 0,
    value: { without: 0, revisions: [{ revision: first }, { revision: second }] },
  });

  const entity = path.join(state, 'model.json');
  expect(await auricle('export', 'reference-en', '2', '--out', entity)).toMatchObject({
    exit: 0,
    value: { name: 'reference-en', version: '2', type: 'triton_model', path: '.', stage: 'Production' },
  });
  expect(await auricle('register', 'one-of-it', entity)).toMatchObject({
    value: { revisions: [{ revision: second }] },
  });
  expect(await auricle('export', 'reference-en', '3')).toMatchObject({ exit: 2 });

  const { text } = await auricle('log', 'reference-en');
  const { text: then } = await auricle('log', 'reference-en', '--at', before);
  expect(text.startsWith(`${then}\n`)).toBe(true);
  expect(then.split('\n')).toHaveLength(1 + 7 + 1);
  expect(await auricle('log', 'reference-en', '--at', 'then')).toMatchObject({ exit: 2 });
  expect(text.split('\n')).toHaveLength(2 + 2 * 7 + 3);
  expect(text).toContain('canary 50 % → full, signed by reviewer, author, approver');
});

const REPOSITORY = path.join(ROOT, 'infra/pool/models/repository');
/** Folders of `reference-en`: the ensemble, its steps, and its live half. */
const PARTS = [
  'reference-en',
  'vad_preprocess',
  'asr_inference',
  'nlp_postprocess',
  'reference-en-stream',
  'vad_preprocess_stream',
  'asr_stream',
];

async function ask(route: string): Promise<unknown> {
  const answered = await fetch(`${stack.url}${route}`, { headers: { authorization: `Bearer ${stack.token}` } });
  expect(answered.status).toBe(200);
  return answered.json();
}

/** Copies the folders of `reference-en`. */
function copyParts(name: string): string {
  const repository = path.join(state, name);
  for (const part of PARTS) cpSync(path.join(REPOSITORY, part), path.join(repository, part), { recursive: true });
  return repository;
}

/** Signs and pushes a revision that differs in a comment, and takes it through all gates. */
async function releaseAnother(): Promise<string> {
  const repository = copyParts('another');
  appendFileSync(path.join(repository, 'reference-en', 'config.pbtxt'), '# Another revision.\n');
  const signed = await auricle('sign', repository, ...PARTS, ...keyOf('author'));
  const { revision } = signed.value as { revision: string };
  expect(await auricle('push', repository, ...PARTS)).toMatchObject({ exit: 0, value: { revision } });
  const waits = await promoteToLast(revision);
  await auricle('approve', 'reference-en', (waits.value as { id: string }).id, ...keyOf('approver'));
  return revision;
}

/** Transcribes in Deepgram's protocol, whose answer names the serving revision. */
async function askWho(): Promise<string | undefined> {
  const answered = await fetch(`${stack.url}/v1/listen?model=reference-en`, {
    method: 'POST',
    headers: { authorization: `Token ${token}`, 'content-type': 'audio/wav' },
    body: readFileSync(path.join(ROOT, 'test/clips/number.wav')),
  });
  return ((await answered.json()) as { metadata?: { models: string[] } }).metadata?.models[0];
}

const answersBy = async () => ({
  stable: [...new Set(await readStable(stack, 'reference-en'))],
  behind: await readBehind(stack),
  answered: await askWho(),
});
const answering = (revision: string) => ({
  stable: [revision],
  behind: [],
  answered: modelUuid('reference-en', revision),
});

const clip = JSON.parse(readFileSync(path.join(ROOT, 'test/clips/clips.json'), 'utf8')).find(
  (one: Clip) => one.file === 'number.wav',
) as Clip;

/** Opens a live stream that sends a share of its audio, and at the end the rest. */
async function speak() {
  const sound = liveSound(clip);
  const left = [...pieces(sound)];
  const query = `model=reference-en&encoding=linear16&sample_rate=${sound.rate}&interim_results=true`;
  const socket = new WebSocket(`${stack.url.replace('http', 'ws')}/v1/listen?${query}`, {
    headers: { authorization: `Token ${token}` },
  });
  const models = new Set<string>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<unknown>();
  const heard: { start: number; duration: number; text: string }[] = [];
  socket.on('message', (data) => {
    const said = JSON.parse(String(data));
    if (said.type === 'Results') begin(models.add(said.metadata.model_uuid));
    if (said.type === 'Results' && said.is_final)
      heard.push({ start: said.start, duration: said.duration, text: said.channel.alternatives[0].transcript });
  });
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject));
  const go = (share: number) => {
    for (const piece of left.splice(0, Math.ceil(left.length * share))) socket.send(piece);
  };
  return {
    go,
    /** Resolves at the first words. */
    begun,
    /** Ends the stream and returns its whole transcript, checked for gaps. */
    async end() {
      go(1);
      socket.send(JSON.stringify({ type: 'CloseStream' }));
      const code = await closed;
      const gaps = heard.filter(({ start }, at) => at > 0 && Math.abs(start - endOf(heard[at - 1])) > 0.01);
      return {
        code,
        gaps,
        models: [...models],
        words: heard
          .map(({ text }) => text)
          .join(' ')
          .trim(),
      };
    },
  };
}

const endOf = (one: { start: number; duration: number } | undefined): number =>
  (one?.start ?? 0) + (one?.duration ?? 0);

/** Transcribes until it is stopped; returns the number of answers by status, and by body when it is an error. */
function keepAsking(): { stop(): Promise<Record<string, number>> } {
  const statuses: Record<string, number> = {};
  let going = true;
  const one = async () => {
    while (going) {
      const form = new FormData();
      form.append('model', 'reference-en');
      form.append('file', new Blob([readFileSync(path.join(ROOT, 'test/clips/number.wav'))]), 'number.wav');
      const headers = { authorization: `Bearer ${token}` };
      const answered = await fetch(`${stack.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
      const body = await answered.text();
      const told = answered.ok ? '200' : `${answered.status} ${body}`;
      statuses[told] = (statuses[told] ?? 0) + 1;
    }
  };
  const all = Promise.all([one(), one()]);
  return {
    async stop() {
      going = false;
      await all;
      return statuses;
    },
  };
}

it('C7, A15, M5, T1: agents serve signed files; rollback under load fails no request', async () => {
  const folder = copyParts('repository');
  const signed = await auricle('sign', folder, ...PARTS, ...keyOf('author'));
  const { revision } = signed.value as { revision: string };
  expect(await auricle('verify', folder, ...PARTS, ...keyOf('author'))).toMatchObject({ exit: 0, value: { revision } });
  expect(mounted).toEqual([revision, revision]);

  expect(await auricle('push', folder, ...PARTS)).toMatchObject({ exit: 0, value: { revision } });
  const waits = await promoteToLast(revision);
  await auricle('approve', 'reference-en', (waits.value as { id: string }).id, ...keyOf('approver'));
  const other = await releaseAnother();
  expect(await auricle('alias', 'reference-en', 'stable', revision)).toMatchObject({ exit: 0 });
  await expect.poll(answersBy, { timeout: 20_000 }).toEqual(answering(revision));
  const usual = await (await speak()).end();
  const load = keepAsking();
  expect(await auricle('alias', 'reference-en', 'stable', other)).toMatchObject({ exit: 0 });
  await expect.poll(answersBy, { timeout: 20_000 }).toEqual(answering(other));
  // C7: the agents fetched the revision, which none has mounted.
  await expect
    .poll(
      async () => {
        const { data } = (await ask('/v1/pools')) as { data: z.infer<typeof listedPool>[] };
        return data.filter(({ models }) => models.some((one) => one.revision === other && !one.tier)).length;
      },
      { timeout: 20_000 },
    )
    .toBe(pools.length);
  const across = await speak();
  across.go(0.5);
  await across.begun;
  // T1: from the command until every roster, agent and answer uses the former revision.
  const until = Date.now() + 5_000;
  expect(await auricle('rollback', 'reference-en')).toMatchObject({ exit: 0, value: { revision } });
  await expect.poll(answersBy, { timeout: until - Date.now(), interval: 20 }).toEqual(answering(revision));
  const told = await across.end();
  expect(usual.words).not.toBe('');
  expect(usual.models).toEqual([modelUuid('reference-en', revision)]);
  expect(told).toEqual({ ...usual, models: [modelUuid('reference-en', other)] });
  const statuses = await load.stop();
  expect(Object.keys(statuses)).toEqual(['200']);
  expect(statuses[200]).toBeGreaterThan(3);
}, 60_000);

it('C7: worse recognition stays back, and a changed folder is unsigned', async () => {
  const revision = await register('worse');
  const pieces = forGrey().map((one) => (one.kind === 'quality' ? quality(30) : one));
  expect(await promote(revision, 'reviewer', ...evidence('worse', pieces))).toMatchObject({
    exit: 1,
    value: { error: { code: 'gate_closed' } },
  });
  const folder = path.join(state, 'model-worse');
  writeFileSync(path.join(folder, '1', 'model.onnx'), 'worsf');
  expect(await auricle('verify', folder, ...keyOf('author'))).toMatchObject({ exit: 1 });
  expect(await auricle('verify', folder, ...keyOf('reviewer'))).toMatchObject({ exit: 1 });
});

it('C7: every transition is in the audit log', async () => {
  await expect
    .poll(
      async () => {
        const entries = await readEntries(stack.url, stack.token, 'eu').catch(() => []);
        return entries.filter((entry) => (JSON.parse(entry) as { type: string }).type === 'model.stage').length;
      },
      { timeout: 30_000 },
    )
    .toBeGreaterThanOrEqual(20);
}, 40_000);

it('C6: a drained pool hands a live stream over without loss', async () => {
  const streams = async () => {
    const { data } = (await ask('/v1/pools')) as { data: z.infer<typeof listedPool>[] };
    return data.flatMap(({ pool, load }) => (load.streams ? [pool] : []));
  };
  const usual = await (await speak()).end();
  await expect.poll(streams, { timeout: 20_000 }).toEqual([]);
  const across = await speak();
  across.go(0.5);
  await across.begun;
  await expect.poll(streams, { timeout: 20_000 }).toHaveLength(1);
  const [pool = ''] = await streams();
  const { exit, out } = await commandLine(
    ['pool', 'drain', pool, '--force', '--edge', stack.url, '--token', stack.token],
    {},
  );
  expect([exit, out]).toEqual([0, `${pool} drains: ${pool}-0\n`]);
  const other = pools.find(({ name }) => name !== pool)?.name;
  await expect.poll(streams, { timeout: 20_000 }).toEqual([other]);
  expect(await across.end()).toEqual(usual);
}, 60_000);

it('the command line knows the verb', async () => {
  const { exit, out } = await commandLine(['model', '--help'], {});
  expect([exit, out]).toEqual([0, expect.stringContaining('model rollback MODEL')]);
});
