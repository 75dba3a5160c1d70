// The real clients against the local emulators: the same code runs in the cloud.
import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openBlobs } from '../../functions/store/blobs.ts';
import { openJobs } from '../../functions/store/jobs.ts';
import { storageConnection } from '../../infra/local/plan.ts';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { temporaryFolder } from '../infra/local/folder.ts';

const folder = temporaryFolder();
const soon = () => AbortSignal.timeout(5_000);
let stack: Stack;
let connection: string;
let place: { prefix: string; region: string; endpoint: string; zones: string[] };

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, quiet: true, parts: ['blob', 'sqs'] });
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
    expect(names).toEqual(['outcomes', 'uploads']);
  });

  it('fails within the deadline when nobody answers', async () => {
    const nowhere = storageConnection({ blob: 1, queue: 1, table: 1 });
    await expect(openBlobs(nowhere).ensure(AbortSignal.timeout(500))).rejects.toThrow();
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
  it('makes its queues, any number of times, and sends what nobody could finish to the dead one', async () => {
    const jobs = openJobs(place);
    await jobs.ensure(soon());
    await jobs.ensure(soon());
    const client = new SQSClient(place);
    const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: 'work-eu' }));
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['RedrivePolicy'] }),
    );
    const redrive = JSON.parse(Attributes?.RedrivePolicy ?? '{}');
    expect(redrive.deadLetterTargetArn).toMatch(/:work-eu-dlq$/);
    expect(Number(redrive.maxReceiveCount)).toBe(5);
  });

  it('fails within the deadline when nobody answers', async () => {
    const nowhere = { ...place, endpoint: 'http://127.0.0.1:1' };
    await expect(openJobs(nowhere).ensure(AbortSignal.timeout(500))).rejects.toThrow();
  });
});
