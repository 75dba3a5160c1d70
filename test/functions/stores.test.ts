// The real clients against the local emulators: the same code runs in the cloud.
import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSettings, type Settings } from '../../functions/settings.ts';
import { openBlobs, openJobs } from '../../functions/stores.ts';
import { storageConnection } from '../../infra/local/plan.ts';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { temporaryFolder } from '../infra/local/folder.ts';

const folder = temporaryFolder();
const soon = () => AbortSignal.timeout(5_000);
let stack: Stack;
let settings: Settings;

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, quiet: true, parts: ['blob', 'sqs'] });
  process.env.AWS_ACCESS_KEY_ID = 'test';
  process.env.AWS_SECRET_ACCESS_KEY = 'test';
  settings = readSettings({
    STORAGE_CONNECTION: storageConnection(stack.ports),
    SQS_ENDPOINT: `http://127.0.0.1:${stack.ports.sqs}`,
    SQS_REGION: 'us-east-1',
    JOBS_QUEUE: 'work',
    JOBS_DEAD_QUEUE: 'work-dead',
  });
});
afterAll(async () => {
  await stack?.stop();
  folder.remove();
});

describe('blobs', () => {
  it('makes its containers, any number of times', async () => {
    const blobs = openBlobs(settings);
    await blobs.ensure(soon());
    await blobs.ensure(soon());
    const names: string[] = [];
    const account = BlobServiceClient.fromConnectionString(settings.STORAGE_CONNECTION);
    for await (const container of account.listContainers()) names.push(container.name);
    expect(names).toEqual(['outcomes', 'uploads']);
  });

  it('fails within the deadline when nobody answers', async () => {
    const nowhere = { ...settings, STORAGE_CONNECTION: storageConnection({ blob: 1, queue: 1, table: 1 }) };
    await expect(openBlobs(nowhere).ensure(AbortSignal.timeout(500))).rejects.toThrow();
  });
});

describe('jobs', () => {
  it('makes its queues, any number of times, and sends what nobody could finish to the dead one', async () => {
    const jobs = openJobs(settings);
    await jobs.ensure(soon());
    await jobs.ensure(soon());
    const client = new SQSClient({ region: settings.SQS_REGION, endpoint: settings.SQS_ENDPOINT as string });
    const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: 'work' }));
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['RedrivePolicy'] }),
    );
    const redrive = JSON.parse(Attributes?.RedrivePolicy ?? '{}');
    expect(redrive.deadLetterTargetArn).toMatch(/:work-dead$/);
    expect(Number(redrive.maxReceiveCount)).toBe(5);
  });

  it('fails within the deadline when nobody answers', async () => {
    const nowhere = { ...settings, SQS_ENDPOINT: 'http://127.0.0.1:1' };
    await expect(openJobs(nowhere).ensure(AbortSignal.timeout(500))).rejects.toThrow();
  });
});
