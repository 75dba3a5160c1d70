// T4, C11 on a whole stack: messages are lost while blob storage, SQS, functions and an agent die. Every job
// ends within its bound, with the words of an undisturbed run, and is booked once. Limits are lowered for the
// whole stack, and the sweep of the functions runs as often as they schedule it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ListQueuesCommand, PurgeQueueCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PartName } from '../../../infra/local/part.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { temporaryFolder } from '../../infra/local/folder.ts';
import { shared } from '../../stack/running.ts';

const FILES = 8;
const AGENT = 'agent-aks-westeurope';
const SECONDS_OF_DAY = 3_600;
/** Twice the silence of an agent, plus the work on a busy machine. */
const PATIENCE = { timeout: 90_000, interval: 500 };
const TEST_MS = 200_000;
const clip = readFileSync(path.resolve(import.meta.dirname, '../../clips/balance.wav'));
const folder = temporaryFolder();
let stack: Stack;
let token: string;

beforeAll(async () => {
  const limits = {
    'infra/pool/agent/jobs/do-job.ts': { JOB_WANTED_MS: 1_000 },
    'functions/jobs/decide-redrive.ts': { JOB_SILENT_MS: 5_000, JOB_SUSPECT_MS: 1_500, QUEUE_LAG_MS: 3_000 },
    'functions/jobs/limits.ts': { JOB_LEASE_MS: 3_000 },
    'shared/jobs/limits.ts': { JOB_VISIBILITY_S: 6 },
    'infra/pool/agent/jobs/take-jobs.ts': { JOB_RETRY_MAX_S: 3 },
    'functions/jobs/record.ts': { UPLOAD_FILE_CHECK_S: 3 },
  };
  stack = await startStack({ port: 0, state: folder.path, limits });
  const claims = { tenant: 'lossy', scope: 'transcribe uploads projects', uploads: 'plain', zones: ['eu'] };
  const allowance = { audioSecondsPerDay: SECONDS_OF_DAY };
  token = await shared({ stack, state: folder.path }).mint({ ...claims, allowance }, 3_600);
});
afterAll(async () => {
  await stack?.stop();
  folder.remove();
});

const ask = (method: string, place: string, body?: unknown): Promise<Response> =>
  fetch(`${stack.url}${place}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

async function send(): Promise<string> {
  const granted = await ask('POST', '/v1/uploads', { model: 'reference-en', sealed: false, bytes: clip.length });
  expect(granted.status).toBe(201);
  const { id, url, headers } = (await granted.json()) as { id: string; url: string; headers: Record<string, string> };
  expect((await fetch(url, { method: 'PUT', headers, body: clip })).status).toBe(201);
  return `/v1/uploads/${id}`;
}

async function speak(): Promise<string> {
  const documents = [{ text: 'Good morning. The weather is fine today.' }, { text: 'We walk to the river.' }];
  const made = await ask('POST', '/v1/projects', { model: 'voice-en', sealed: false, documents });
  expect(made.status, await made.clone().text()).toBe(201);
  return `/v1/projects/${((await made.json()) as { id: string }).id}`;
}

interface Status {
  readonly status: string;
  readonly seconds?: number;
  readonly waiting?: { readonly for: string };
}

/** Reads the status; a part that is down gives none. */
async function statusOf(place: string): Promise<Status> {
  const answer = await ask('GET', place).catch(() => undefined);
  return answer?.ok ? ((await answer.json()) as Status) : { status: 'unknown' };
}

async function text(place: string): Promise<string> {
  let said = '';
  const read = async () => {
    const answer = await ask('GET', `${place}/transcript?format=text`);
    said = await answer.text();
    return answer.status;
  };
  await expect.poll(read, PATIENCE).toBe(200);
  return said;
}

const sweep = (name: string) =>
  fetch(`http://127.0.0.1:${stack.ports.functions}/admin/functions/${name}`, { method: 'POST' }).catch(() => undefined);

async function ended(places: readonly string[]): Promise<void> {
  const left = async () => {
    await sweep('on-lost');
    return (await Promise.all(places.map(statusOf))).map(({ status }) => status);
  };
  await expect.poll(left, PATIENCE).toEqual(places.map(() => 'done'));
}

/** Deletes every message of the zone's queues, including those that agents hold. */
async function loseMessages(): Promise<void> {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const sqs = new SQSClient({ region: 'us-east-1', endpoint: `http://127.0.0.1:${stack.ports.sqs}`, credentials });
  const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({ QueueNamePrefix: 'jobs-eu-' }));
  for (const QueueUrl of QueueUrls) await sqs.send(new PurgeQueueCommand({ QueueUrl }));
  sqs.destroy();
}

describe('T4 C11: recovers messages lost while storage, SQS, functions and agent die', () => {
  it(
    'every upload and project ends with its words, and is booked once',
    async () => {
      const [upload, project] = [await send(), await speak()];
      await ended([upload, project]);
      const half = async () => [await speak(), ...(await Promise.all(Array.from({ length: FILES / 2 }, send)))];
      const places = await half();
      // No agent takes a message that is sent from here on before it is deleted.
      stack.kill(AGENT, 'SIGSTOP');
      places.push(...(await half()));
      const isSent = async (place: string) => (await statusOf(place)).waiting?.for !== 'upload';
      await expect.poll(async () => (await Promise.all(places.map(isSent))).every(Boolean), PATIENCE).toBe(true);
      await loseMessages();
      const killed: PartName[] = [AGENT, 'sqs', 'blob', 'functions'];
      const before = new Map(killed.map((part) => [part, stack.pid(part)]));
      for (const part of killed) stack.kill(part);
      const isBack = (part: PartName) => stack.pid(part) !== before.get(part) && stack.isReady(part);
      await expect.poll(() => killed.every(isBack), PATIENCE).toBe(true);
      await ended(places);

      const uploads = [upload, ...places.filter((place) => place.startsWith('/v1/uploads/'))];
      const texts: string[] = [];
      for (const place of uploads) texts.push(await text(place));
      expect(new Set(texts).size).toBe(1);
      const spoken = await Promise.all([project, ...places.filter((one) => !uploads.includes(one))].map(statusOf));
      expect(new Set(spoken.map(({ seconds }) => seconds)).size).toBe(1);
      expect(shared({ stack, state: folder.path }).logs()).toContain('"what":"resent"');

      const heard = await Promise.all(uploads.map(statusOf));
      const seconds = [...heard, ...spoken].reduce((sum, one) => sum + (one.seconds ?? 0), 0);
      const left = async () => {
        await sweep('on-stalled');
        const answer = await ask('POST', '/v1/uploads', { model: 'reference-en', sealed: false, bytes: 1 });
        return answer.headers.get('x-ratelimit-remaining-audio-seconds');
      };
      await expect.poll(left, PATIENCE).toBe(String(Math.floor(SECONDS_OF_DAY - seconds)));
    },
    TEST_MS,
  );
});
