// The whole way of a file through the back office (T4, C11), on the real triggers, the local functions host and the
// emulators. The agent is a double: it opens jobs and writes outcomes as the real one does, and opens no seal.
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { CreateQueueCommand, DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { UPLOAD_WINDOW } from '../../../functions/jobs/limits.ts';
import { type Host, startHost } from '../../../infra/local/functions-host/host.ts';
import { storageConnection } from '../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { jobQueue, readJob, type UploadJob } from '../../../shared/jobs/job.ts';
import { UPLOAD_PIECES_MAX, UPLOAD_S } from '../../../shared/jobs/limits.ts';
import { type OutcomeFacts, outcomeMetadataOf } from '../../../shared/jobs/outcome.ts';
import type { OpenedJob, UploadGrant, UploadList, UploadRow } from '../../../shared/jobs/upload-contract.ts';
import { temporaryFolder } from '../../infra/local/folder.ts';
import { type Callers, makeCallers } from '../callers.ts';

const PATIENCE = { timeout: 9_000, interval: 100 };
const folder = temporaryFolder();
const ROOT = path.resolve(import.meta.dirname, '../../..');
let stack: Stack;
let host: Host;
let callers: Callers;
let sqs: SQSClient;
let queue: string;

beforeAll(async () => {
  vi.spyOn(console, 'log').mockImplementation(() => {});
  stack = await startStack({ port: 0, state: folder.path, parts: ['blob', 'sqs'] });
  callers = await makeCallers();
  const { settings } = callers;
  const json = Object.fromEntries(
    (['ZONES', 'ZONE_KEYS', 'EDGE_KEYS', 'ISSUERS', 'ATTESTATION'] as const).map((name) => [
      name,
      JSON.stringify(settings[name]),
    ]),
  );
  const connection = storageConnection(stack.ports);
  const environment = {
    ...json,
    MODE: 'development',
    WEBHOOK_KEY: settings.WEBHOOK_KEY,
    STORAGE_CONNECTION: connection,
    AzureWebJobsStorage: connection,
    SQS_ENDPOINT: `http://127.0.0.1:${stack.ports.sqs}`,
    SQS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  };
  Object.assign(process.env, environment);
  host = await startHost({
    folder: path.join(ROOT, 'functions'),
    entry: 'triggers.ts',
    port: 0,
    settings: environment,
    log: () => {},
    pollMs: 20,
  });
  sqs = new SQSClient({ region: 'us-east-1', endpoint: environment.SQS_ENDPOINT });
  const name = jobQueue('jobs', 'eu', 'reference-en');
  queue = (await sqs.send(new CreateQueueCommand({ QueueName: name }))).QueueUrl as string;
});

afterAll(async () => {
  sqs?.destroy();
  await host?.stop();
  await stack?.stop();
  folder.remove();
});

async function ask(method: string, place: string, body?: unknown, tenant = 'acme'): Promise<Response> {
  return fetch(`http://127.0.0.1:${host.port}/api/${place}`, {
    method,
    headers: { authorization: `Bearer ${await callers.edgeToken(tenant)}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function grant(more: Record<string, unknown> = {}): Promise<UploadGrant> {
  const asked = {
    id: eventId(Date.now(), randomBytes(10)),
    tenant: 'acme',
    model: 'reference-en',
    sealed: false,
    zone: 'eu',
    ...more,
  };
  const response = await ask('POST', 'uploads', asked);
  expect(response.status).toBe(201);
  return (await response.json()) as UploadGrant;
}

const put = (url: string, body: BodyInit | null, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'PUT', headers: { 'x-ms-blob-type': 'BlockBlob', ...headers }, body });

const see = async (id: string): Promise<UploadRow> =>
  (await (await ask('GET', `uploads/acme/${id}`)).json()) as UploadRow;
const status = async (id: string) => (await see(id)).status;

/** Takes the next job of an upload. Others are dropped: a queue delivers at least once, also what an earlier test ended. */
async function takeJob(upload: string): Promise<UploadJob> {
  for (let tries = 0; tries < 20; tries += 1) {
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: queue, WaitTimeSeconds: 2 }));
    const [message] = Messages;
    if (!message) continue;
    await sqs.send(new DeleteMessageCommand({ QueueUrl: queue, ReceiptHandle: message.ReceiptHandle }));
    const job = readJob(message.Body ?? '');
    if (job && 'upload' in job && job.upload === upload) return job;
  }
  throw new Error('no job came');
}

async function open(job: UploadJob, zone = 'eu'): Promise<Response> {
  return fetch(`http://127.0.0.1:${host.port}/api/jobs/open`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await callers.poolToken(zone)}` },
    body: JSON.stringify(await callers.openBody(job)),
  });
}

const opened = async (job: UploadJob): Promise<OpenedJob> => (await (await open(job)).json()) as OpenedJob;

function write(job: OpenedJob, name: string, facts: OutcomeFacts): Promise<Response> {
  const metadata = Object.entries(outcomeMetadataOf(facts)).map(([key, value]) => [`x-ms-meta-${key}`, value]);
  return put(job.write[name]?.url ?? '', 'sealed', { 'if-none-match': '*', ...Object.fromEntries(metadata) });
}

describe('T4: a file from grant to transcript', () => {
  it('in one piece', async () => {
    const { id, url } = await grant({ bytes: 5 });
    expect(await status(id)).toBe('granted');
    expect((await put(url, 'sound')).status).toBe(201);
    await expect.poll(() => status(id), PATIENCE).toBe('admitted');
    const job = await takeJob(id);
    expect(job).toMatchObject({ kind: 'plan', tenant: 'acme', upload: id, run: 1 });
    const work = await opened(job);
    expect(await (await fetch(work.read.upload?.url ?? '')).text()).toBe('sound');
    expect((await write(work, 'transcript', { seconds: 1.5, pieces: 1, warnings: ['lossy'] })).status).toBe(201);
    await expect.poll(() => status(id), PATIENCE).toBe('done');
    await expect.poll(async () => (await see(id)).audio, PATIENCE).toBe('deleted');
    expect(await see(id)).toMatchObject({ seconds: 1.5, warnings: ['lossy'], transcript: 'held', bytes: 5 });
    const read = (await (await ask('POST', `uploads/acme/${id}/open`)).json()) as { read: { url: string } };
    expect(await (await fetch(read.read.url)).text()).toBe('sealed');
    expect((await open(job)).status).toBe(409);
  });
});

describe('T4: a file of as many pieces as there may be', () => {
  it('begins and ends in one transaction, and queues at most a window of jobs', async () => {
    const { id, url } = await grant();
    await put(url, 'twelve hours');
    const plan = await opened(await takeJob(id));
    await write(plan, 'plan', { pieces: UPLOAD_PIECES_MAX, seconds: UPLOAD_S });
    await expect.poll(() => status(id), PATIENCE).toBe('planned');
    const jobs: UploadJob[] = [];
    for (let job = 0; job < UPLOAD_WINDOW; job += 1) jobs.push(await takeJob(id));
    expect(new Set(jobs.map(({ piece }) => piece)).size).toBe(UPLOAD_WINDOW);
    expect(((await (await ask('DELETE', `uploads/acme/${id}`)).json()) as UploadRow).status).toBe('cancelled');
    expect((await open(jobs[0] as UploadJob)).status).toBe(409);
    await expect.poll(() => held('outcomes', id), PATIENCE).toEqual([]);
  });
});

describe('refused and cancelled uploads', () => {
  it.each([
    ['nothing in it', { bytes: 5 }, '', 'audio_empty'],
    ['another size than was said', { bytes: 5 }, 'four', 'upload_size_differs'],
    ['no envelope where one was promised', { sealed: true }, 'RIFF', 'envelope_invalid'],
  ])('a file with %s is refused and deleted', async (_, asked, content, reason) => {
    const { id, url } = await grant(asked);
    await put(url, content);
    await expect.poll(() => status(id), PATIENCE).toBe('refused');
    expect((await see(id)).refusal?.reason).toBe(reason);
    await expect.poll(async () => (await see(id)).audio, PATIENCE).toBe('deleted');
    expect((await ask('POST', `uploads/acme/${id}/rerun`)).status).toBe(409);
  });

  it('a forged blob name is ignored', async () => {
    const blobs = BlobServiceClient.fromConnectionString(storageConnection(stack.ports));
    const names = ['acme/x/y', 'nobody', `acme/${eventId(Date.now(), randomBytes(10))}`];
    for (const name of names) await blobs.getContainerClient('uploads').getBlockBlobClient(name).upload('x', 1);
    const outcome = `acme/${eventId(Date.now(), randomBytes(10))}/1/transcript`;
    await blobs.getContainerClient('outcomes').getBlockBlobClient(outcome).upload('x', 1);
    await expect.poll(() => held('uploads', ''), PATIENCE).toEqual([]);
    await expect.poll(() => held('outcomes', outcome), PATIENCE).toEqual([]);
  });
});

/** Names of blobs that contain a text. */
async function held(container: string, part: string): Promise<string[]> {
  const names: string[] = [];
  const blobs = BlobServiceClient.fromConnectionString(storageConnection(stack.ports));
  for await (const { name } of blobs.getContainerClient(container).listBlobsFlat()) {
    if (name.includes(part)) names.push(name);
  }
  return names;
}

describe('callers', () => {
  const id = eventId(0, new Uint8Array(10));

  it('the edge, for one tenant', async () => {
    expect((await ask('GET', `uploads/acme/${id}`, undefined, 'other')).status).toBe(404);
    expect((await ask('GET', 'uploads/acme', undefined, 'other')).status).toBe(404);
    expect((await ask('GET', 'uploads/acme')).status).toBe(200);
    const nobody = await fetch(`http://127.0.0.1:${host.port}/api/uploads/acme`);
    expect([nobody.status, await nobody.json()]).toEqual([401, { error: { reason: 'token_missing' } }]);
  });

  it.each([
    ['of another type', () => callers.edgeToken('acme', {}, 'at+jwt')],
    ['that has expired', () => callers.edgeToken('acme', {}, undefined, -60)],
    ['that is none', async () => 'x.y.z'],
  ])('a token %s is refused', async (_, token) => {
    const headers = { authorization: `Bearer ${await token()}` };
    expect((await fetch(`http://127.0.0.1:${host.port}/api/uploads/acme`, { headers })).status).toBe(401);
  });

  it('C11: only an agent of the zone with proof opens a wanted job', async () => {
    const { id, url } = await grant();
    await put(url, 'sound');
    const job = await takeJob(id);
    expect((await open(job, 'us')).status).toBe(421);
    const post = async (body: unknown, token: string) =>
      fetch(`http://127.0.0.1:${host.port}/api/jobs/open`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      });
    const token = await callers.poolToken('eu');
    const other = { ...job, kind: 'merge' } as const;
    expect((await post(await callers.openBody(job, 'agent-1', other), token)).status).toBe(401);
    expect((await post(await callers.openBody(job, 'agent-1', job, 'agent-2'), token)).status).toBe(401);
    expect((await post(await callers.openBody(job), await callers.poolToken('eu', 'transcribe'))).status).toBe(403);
    expect((await post({ job, proof: 'a.b.c' }, token)).status).toBe(401);
    expect((await post({ job: { ...job, kind: 'steal' } }, token)).status).toBe(400);
    expect((await open(job)).status).toBe(200);
  });
});

describe('news and lists', () => {
  it('news come when something has changed, and not before', async () => {
    const { id, url } = await grant();
    const { seq } = await see(id);
    expect((await ask('GET', `uploads/acme/${id}/events?after=${seq}&wait=0`)).status).toBe(204);
    const news = async (): Promise<UploadRow> => {
      // 204: nothing has changed in so many seconds, which a busy machine may need; who waits asks again.
      const response = await ask('GET', `uploads/acme/${id}/events?after=${seq}&wait=8`);
      return response.status === 204 ? news() : ((await response.json()) as UploadRow);
    };
    const waiting = news();
    await put(url, 'sound');
    expect((await waiting).seq).toBeGreaterThan(seq);
    await takeJob(id);
  });

  it('a list is newest first, page by page', async () => {
    const first = await grant();
    const second = await grant();
    const page = (await (await ask('GET', 'uploads/acme?limit=1')).json()) as UploadList;
    expect(page.uploads.map(({ id }) => id)).toEqual([second.id]);
    const rest = (await (await ask('GET', `uploads/acme?limit=1&after=${page.next}`)).json()) as UploadList;
    expect(rest.uploads.map(({ id }) => id)).toEqual([first.id]);
  });
});
