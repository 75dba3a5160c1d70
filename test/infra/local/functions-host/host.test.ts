// A tiny app on the local functions host, against the storage emulator that the stack uses.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import path from 'node:path';
import { BlobServiceClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deliveriesOf } from '../../../../infra/local/functions-host/deliveries.ts';
import { type Host, startHost } from '../../../../infra/local/functions-host/host.ts';
import { openAccounts } from '../../../../infra/local/functions-host/storage.ts';
import { claimRun } from '../../../../infra/local/functions-host/timer-claim.ts';
import { storageConnection } from '../../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../../infra/local/stack.ts';
import { temporaryFolder } from '../folder.ts';

const PATIENCE = { timeout: 30_000, interval: 50 };
const folder = temporaryFolder();
const log: string[] = [];
let stack: Stack;
let host: Host;
let blobs: BlobServiceClient;
let queues: QueueServiceClient;

beforeAll(async () => {
  stack = await startStack({ port: 0, state: folder.path, parts: ['blob'] });
  const connection = storageConnection(stack.ports);
  blobs = BlobServiceClient.fromConnectionString(connection);
  queues = QueueServiceClient.fromConnectionString(connection);
  host = await startHost({
    folder: path.join(import.meta.dirname, 'app'),
    entry: 'triggers.ts',
    port: 0,
    settings: { AzureWebJobsStorage: connection, STORE: connection, IN: 'inbox' },
    log: (level, text) => log.push(`${level}: ${text}`),
    pollMs: 20,
    deliveries: ({ name }) => ({ lost: 0, twice: 2 })[name] ?? 1,
  });
});

afterAll(async () => {
  await host?.stop();
  await stack?.stop();
  folder.remove();
});

const at = (place: string) => `http://127.0.0.1:${host.port}${place}`;

async function messages(queue: string): Promise<string[]> {
  const { peekedMessageItems } = await queues.getQueueClient(queue).peekMessages({ numberOfMessages: 32 });
  return peekedMessageItems.map((item) => Buffer.from(item.messageText, 'base64').toString());
}
const send = (queue: string, message: string) =>
  queues.getQueueClient(queue).sendMessage(Buffer.from(message).toString('base64'));
const exists = (container: string, name: string) => blobs.getContainerClient(container).getBlobClient(name).exists();

it('registers every function of the app', () => {
  expect(host.functions.sort()).toEqual([
    'each-second',
    'fails',
    'greet',
    'on-arrived',
    'on-noticed',
    'on-shared',
    'on-upload',
    'tick',
  ]);
});

describe('HTTP', () => {
  it('passes route, query and body, and returns status and headers', async () => {
    const response = await fetch(at('/api/greet/ann/3?q=x'), { method: 'POST', body: 'hi' });
    expect(response.status).toBe(201);
    expect(response.headers.get('x-times')).toBe('3');
    expect(await response.json()).toEqual({ hello: 'ann', query: 'x', body: 'hi' });
  });

  it('knows an optional part, a wrong method, a wrong type and nothing', async () => {
    expect((await fetch(at('/api/greet/ann'))).headers.get('x-times')).toBe('none');
    expect((await fetch(at('/api/greet/ann'), { method: 'PUT' })).status).toBe(405);
    expect((await fetch(at('/api/greet/1'))).status).toBe(404);
    expect((await fetch(at('/api/none'))).status).toBe(404);
  });

  it('answers 400 to an invalid address', async () => {
    const status = (path: string, host = 'localhost') =>
      new Promise((resolve, reject) => {
        const { hostname, port } = new URL(at('/'));
        get({ hostname, port, path, headers: { host } }, (response) => resolve(response.resume().statusCode)).on(
          'error',
          reject,
        );
      });
    expect(await status('//')).toBe(400);
    expect(await status('/api/greet/ann', 'a b')).toBe(400);
    expect(await status('/api/greet/%ff')).toBe(400);
    expect(await status('/api/greet/%41nn')).not.toBe(400);
  });

  it('answers 500 without the reason when a function throws', async () => {
    const response = await fetch(at('/api/fails'));
    expect([response.status, await response.text()]).toEqual([500, '']);
    expect(log.join('\n')).toContain('the reason is ours alone');
  });
});

describe('blobs and queues', () => {
  it('a blob becomes a message, a message becomes a blob', async () => {
    await blobs.getContainerClient('inbox').getBlockBlobClient('acme/a.wav').uploadData(Buffer.from('RIFF'));
    const body = JSON.stringify({ tenant: 'acme', name: 'a', bytes: 4 });
    await expect.poll(() => exists('outbox', body), PATIENCE).toBe(true);
  });

  it('C11: blobs that are done leave one cursor and no receipts', async () => {
    const hosts = blobs.getContainerClient('azure-webjobs-hosts');
    const cursor = 'blobtriggers/app/on-upload/inbox';
    const read = async () => (await hosts.getBlobClient(cursor).getProperties()).metadata?.after;
    await expect.poll(() => exists(hosts.containerName, cursor), PATIENCE).toBe(true);
    const before = await read();
    await blobs.getContainerClient('inbox').getBlockBlobClient('acme/b.wav').uploadData(Buffer.from('RIFF'));
    await expect.poll(read, PATIENCE).not.toBe(before);
    const body = JSON.stringify({ tenant: 'acme', name: 'b', bytes: 4 });
    await expect.poll(() => exists('outbox', body), PATIENCE).toBe(true);
    const names: string[] = [];
    for await (const item of hosts.listBlobsFlat()) names.push(item.name);
    expect(names.filter((name) => name.endsWith('.wav'))).toEqual([]);
  });

  it('a failing blob goes to the poison queue after its tries', async () => {
    await blobs.getContainerClient('inbox').getBlockBlobClient('acme/broken.wav').uploadData(Buffer.from('x'));
    await expect.poll(() => messages('webjobs-blobtrigger-poison').catch(() => []), PATIENCE).toHaveLength(1);
    const [message = '{}'] = await messages('webjobs-blobtrigger-poison');
    expect(JSON.parse(message)).toMatchObject({ ContainerName: 'inbox', BlobName: 'acme/broken.wav' });
    expect(log.filter((line) => line.includes('on-upload failed'))).toHaveLength(2);
  });

  it('a message is tried again, then buried', async () => {
    await send('arrived', 'once');
    await send('arrived', 'poison');
    await expect.poll(() => messages('arrived-poison').catch(() => []), PATIENCE).toEqual(['poison']);
    await expect.poll(() => exists('outbox', 'once'), PATIENCE).toBe(true);
    await expect.poll(() => messages('arrived'), PATIENCE).toEqual([]);
  });
});

describe('events of blobs', () => {
  const put = (name: string) => blobs.getContainerClient('notices').getBlockBlobClient(name).upload('x', 1);

  it('are lost and repeated as configured', async () => {
    for (const name of ['lost', 'twice', 'once']) await put(name);
    await expect
      .poll(async () => (await messages('noticed').catch(() => [])).sort(), PATIENCE)
      .toEqual(['once', 'twice', 'twice']);
  });

  it('follow a setting, which is refused when it is invalid', () => {
    const event = { function: 'f', container: 'c', name: 'n', etag: 'e' };
    expect(deliveriesOf(undefined)(event)).toBe(1);
    const round = deliveriesOf('1,0,2');
    expect([1, 2, 3, 4].map(() => round(event))).toEqual([1, 0, 2, 1]);
    for (const wrong of ['twice', '1,', '-1', '1;2']) expect(() => deliveriesOf(wrong)).toThrow('AURICLE_BLOB_EVENTS');
  });
});

describe('two hosts on one storage account', () => {
  let second: ChildProcess;
  let port: number;

  beforeAll(async () => {
    const connection = storageConnection(stack.ports);
    const env = { PATH: process.env.PATH, AzureWebJobsStorage: connection, STORE: connection, IN: 'inbox' };
    const runner = path.join(import.meta.dirname, '../../azure/packed-host.ts');
    second = fork(runner, [path.join(import.meta.dirname, 'app'), 'triggers.ts'], {
      env,
      execArgv: [],
      stdio: 'ignore',
    });
    [{ port }] = await once(second, 'message');
  });
  afterAll(() => void second?.kill());

  it('work on each message once', async () => {
    expect((await fetch(`http://127.0.0.1:${port}/admin/host/status`)).status).toBe(200);
    const names = Array.from({ length: 30 }, (_, at) => `message-${at}`);
    await Promise.all(names.map((name) => send('shared', name)));
    await expect.poll(() => messages('shared'), PATIENCE).toEqual([]);
    await expect.poll(async () => (await messages('shares')).sort(), PATIENCE).toEqual(names.sort());
  });

  it('run a timer once each time', async () => {
    const seconds = () => messages('seconds').catch(() => []);
    const before = (await seconds()).length;
    await expect.poll(async () => (await seconds()).length, PATIENCE).toBeGreaterThanOrEqual(Math.min(32, before + 3));
    const runs = await seconds();
    expect(new Set(runs).size).toBe(runs.length);
  });

  it('claim the same run at once: one gets it, none an earlier one', async () => {
    const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
    const context = { accounts: openAccounts({ AzureWebJobsStorage: storageConnection(stack.ports) }), hostId: 'two' };
    const claim = (second: number) => claimRun(context, 'timer', at(second));
    expect((await Promise.all([claim(1), claim(1), claim(1), claim(1)])).filter(Boolean)).toHaveLength(1);
    expect(await claim(1)).toBe(false);
    expect(await claim(3)).toBe(true);
    expect(await claim(2)).toBe(false);
  });
});

describe('timers', () => {
  it('run by the administration route', async () => {
    const response = await fetch(at('/admin/functions/tick'), { method: 'POST' });
    expect(response.status).toBe(202);
    expect(await messages('ticks')).toEqual([JSON.stringify({ pastDue: false })]);
  });
});
