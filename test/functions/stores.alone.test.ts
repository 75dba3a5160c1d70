// The real clients against the local emulators: the same code runs in the cloud.
import { GetQueueAttributesCommand, GetQueueUrlCommand, SQSClient } from '@aws-sdk/client-sqs';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBlobs, openPlainBlobs } from '../../functions/store/blobs.ts';
import { openJobs } from '../../functions/store/jobs.ts';
import { storageConnection } from '../../infra/local/plan.ts';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { jobQueue, lightQueue, type UploadJob } from '../../shared/jobs/job.ts';
import { temporaryFolder } from '../infra/local/folder.ts';

const folder = temporaryFolder();
const soon = () => AbortSignal.timeout(5_000);
let stack: Stack;
let connection: string;
let place: { prefix: string; region: string; endpoint: string; zones: string[] };

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, parts: ['blob', 'sqs'] });
  process.env.AWS_ACCESS_KEY_ID = 'test';
  process.env.AWS_SECRET_ACCESS_KEY = 'test';
  connection = storageConnection(stack.ports);
  place = { prefix: 'work', region: 'us-east-1', endpoint: `http://127.0.0.1:${stack.ports.sqs}`, zones: ['eu'] };
});
afterAll(async () => {
  await stack?.stop();
  folder.remove();
});

describe('blobs', () => {
  it('makes its containers, any number of times', async () => {
    const blobs = openBlobs(connection);
    await blobs.ensure(soon());
    await blobs.ensure(soon());
    const names: string[] = [];
    const account = BlobServiceClient.fromConnectionString(connection);
    for await (const container of account.listContainers()) names.push(container.name);
    expect(names).toEqual(['model-uploads', 'models', 'outcomes', 'uploads']);
  });

  it('fails within the deadline when storage does not answer', async () => {
    const nowhere = storageConnection({ blob: 1, queue: 1, table: 1 });
    await expect(openBlobs(nowhere).ensure(AbortSignal.timeout(500))).rejects.toThrow();
  });
});

describe('A11 C8: tiers', () => {
  it('an archived file is placed, unreadable, and returns', async () => {
    const blobs = openPlainBlobs(connection);
    await blobs.create('models', 'tiered', new Uint8Array(3));
    expect(await blobs.find('models', 'tiered')).toMatchObject({ placed: { tier: 'hot' } });
    for (const tier of ['cool', 'cold', 'archive'] as const) {
      await blobs.setTier('models', 'tiered', tier);
      expect((await blobs.list('models', 'tiered'))[0]?.placed?.tier).toBe(tier);
    }
    const url = await blobs.address('models', 'tiered', 'read', Date.now() + 60_000);
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get('x-ms-error-code')]).toEqual([409, 'BlobArchived']);
    await blobs.setTier('models', 'tiered', 'hot', 'high');
    expect((await fetch(url)).status).toBe(200);
  });
});

describe('C2, A21: an address has one right on one blob', () => {
  const put = (url: string, headers: Record<string, string> = {}) =>
    fetch(url, { method: 'PUT', headers: { 'x-ms-blob-type': 'BlockBlob', ...headers }, body: 'x' });
  const later = () => Date.now() + 60_000;
  const address = (name: string, right: 'read' | 'create' | 'write', expires = later()) =>
    openBlobs(connection).address('uploads', name, right, expires);

  it('write: creates and replaces, and neither reads nor lists nor deletes', async () => {
    const url = await address('acme/a', 'write');
    expect([(await put(url)).status, (await put(url)).status]).toEqual([201, 201]);
    expect((await fetch(url)).status).toBe(403);
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(403);
    expect((await fetch(`${url.replace('/acme/a', '')}&restype=container&comp=list`)).status).toBe(403);
    expect((await put(url.replace('acme/a', 'acme/b'))).status).toBe(403);
  });

  it('create: what is there stays as it is', async () => {
    const url = await address('acme/c', 'create');
    expect([(await put(url)).status, (await put(url)).status]).toEqual([201, 403]);
  });

  it('read: that blob, and it cannot be written', async () => {
    const url = await address('acme/a', 'read');
    expect([(await fetch(url)).status, (await put(url)).status]).toEqual([200, 403]);
  });

  it('nothing once it has expired', async () => {
    expect((await put(await address('acme/d', 'write', Date.now() - 1_000))).status).toBe(403);
  });
});

describe('jobs', () => {
  const job = (model: string, change: Partial<UploadJob> = {}): UploadJob => ({
    v: 1,
    kind: 'plan',
    tenant: 'acme',
    upload: '01890a5d-ac96-774b-bcce-b302099a8057',
    run: 1,
    attempt: 1,
    zone: 'eu',
    model,
    class: 'batch',
    ...change,
  });

  it('creates a model’s queue with its first job; failed jobs reach its dead queue', async () => {
    const jobs = openJobs(place);
    await jobs.ensure(soon());
    await jobs.ensure(soon());
    expect(await jobs.depth('eu')).toEqual({ waiting: 0, taken: 0, dead: 0 });
    const sent = [job('one'), job('one'), job('other'), job('one', { light: true })];
    expect(await jobs.send(sent)).toHaveLength(4);
    // Another instance finds what this one has made.
    expect(await openJobs(place).send([job('one')])).toHaveLength(1);
    const client = new SQSClient(place);
    for (const [name, waiting] of [
      [jobQueue('work', 'eu', 'one'), 3],
      [jobQueue('work', 'eu', 'other'), 1],
      [lightQueue('work', 'eu', 'one'), 1],
    ] as const) {
      const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }));
      const { Attributes } = await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }));
      expect(Number(Attributes?.ApproximateNumberOfMessages), name).toBe(waiting);
      const redrive = JSON.parse(Attributes?.RedrivePolicy ?? '{}');
      expect(redrive.deadLetterTargetArn).toMatch(/:work-eu-dlq$/);
      expect(Number(redrive.maxReceiveCount)).toBe(5);
    }
  });

  it('counts the zone’s queues, not those of a zone with a longer name', async () => {
    const jobs = openJobs({ ...place, prefix: 'count', zones: ['eu', 'eu-west'] });
    await jobs.ensure(soon());
    await jobs.send([job('a'), job('b'), job('a', { zone: 'eu-west' }), job('c', { light: true })]);
    expect(await jobs.depth('eu')).toEqual({ waiting: 3, taken: 0, dead: 0 });
    expect(await jobs.depth('eu-west')).toEqual({ waiting: 1, taken: 0, dead: 0 });
    // Counts one queue, as the sweep does; a missing queue counts as empty.
    expect(await jobs.messages(job('c', { light: true }))).toEqual({ waiting: 1, taken: 0 });
    expect(await jobs.messages(job('c'))).toEqual({ waiting: 0, taken: 0 });
  });

  it('fails within the deadline when the queue does not answer', async () => {
    const nowhere = { ...place, endpoint: 'http://127.0.0.1:1' };
    await expect(openJobs(nowhere).ensure(AbortSignal.timeout(500))).rejects.toThrow();
  });
});
