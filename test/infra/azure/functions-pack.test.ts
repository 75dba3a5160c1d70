// C2, C11: what is deployed is what was tested: the packed app runs alone, with nothing of this repository around it.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { BlobServiceClient } from '@azure/storage-blob';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packFunctions } from '../../../infra/azure/functions/pack.ts';
import { storageConnection } from '../../../infra/local/plan.ts';
import { type Stack, startStack } from '../../../infra/local/stack.ts';
import { temporaryFolder } from '../local/folder.ts';

const folder = temporaryFolder();
const app = path.join(folder.path, 'app');
let stack: Stack;
let child: ChildProcess;
let host: { port: number; functions: string[] };

beforeAll(async () => {
  stack = await startStack({ port: 0, state: path.join(folder.path, 'state'), parts: ['blob', 'sqs'] });
  const connection = storageConnection(stack.ports);
  const settings = {
    STORAGE_CONNECTION: connection,
    AzureWebJobsStorage: connection,
    SQS_ENDPOINT: `http://127.0.0.1:${stack.ports.sqs}`,
    SQS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    MODE: 'development',
  };
  await packFunctions(app);
  const { main } = JSON.parse(readFileSync(path.join(app, 'package.json'), 'utf8')) as { main: string };
  const runner = path.join(import.meta.dirname, 'packed-host.ts');
  child = fork(runner, [app, main], { env: { PATH: process.env.PATH, ...settings }, execArgv: [], stdio: 'ignore' });
  [host] = await once(child, 'message');
});
afterAll(async () => {
  child?.kill();
  await stack?.stop();
  folder.remove();
});

it('says which extensions its blob and queue triggers are found with', () => {
  const { extensionBundle } = JSON.parse(readFileSync(path.join(app, 'host.json'), 'utf8'));
  expect(extensionBundle).toEqual({ id: 'Microsoft.Azure.Functions.ExtensionBundle', version: '[4.*, 5.0.0)' });
});

it('registers every trigger', () => {
  expect([...host.functions].sort()).toEqual([
    'agent-demand',
    'agent-live',
    'agent-models',
    'audit-accept',
    'audit-erase',
    'audit-erasures',
    'audit-events',
    'audit-gaps',
    'audit-health',
    'audit-hold',
    'audit-holds',
    'audit-log',
    'audit-logs',
    'audit-release',
    'audit-search',
    'audit-stream',
    'document-open',
    'export-file',
    'export-list',
    'export-make',
    'export-see',
    'health',
    'job-open',
    'job-replay',
    'model-alias',
    'model-evidence',
    'model-files',
    'model-list',
    'model-log',
    'model-move',
    'model-plan',
    'model-register',
    'model-retire',
    'model-revision',
    'model-see',
    'model-statement',
    'model-tiers',
    'name-list',
    'name-set',
    'on-lost',
    'on-notice',
    'on-outcome',
    'on-stalled',
    'on-upload',
    'project-delete',
    'project-events',
    'project-list',
    'project-make',
    'project-rerun',
    'project-see',
    'segment-edit',
    'tier-list',
    'upload-cancel',
    'upload-events',
    'upload-grant',
    'upload-list',
    'upload-open',
    'upload-rerun',
    'upload-see',
  ]);
});

it('reaches its stores', async () => {
  const health = await fetch(`http://127.0.0.1:${host.port}/api/health`);
  expect([health.status, await health.json()]).toMatchObject([200, { status: 'ok' }]);
});

it('opens nothing without keys', async () => {
  const headers = { authorization: 'Bearer a.b.c' };
  const list = await fetch(`http://127.0.0.1:${host.port}/api/uploads/acme`, { headers });
  expect([list.status, await list.json()]).toEqual([501, { error: { reason: 'uploads_closed' } }]);
});

it('looks at new blobs by name', async () => {
  const blobs = BlobServiceClient.fromConnectionString(storageConnection(stack.ports));
  const forged = blobs.getContainerClient('uploads').getBlockBlobClient('forged');
  await forged.upload('x', 1);
  await expect.poll(() => forged.exists(), { timeout: 30_000 }).toBe(false);
});

it('needs no module from outside', () => {
  expect(existsSync(path.join(app, 'node_modules/@azure/functions/package.json'))).toBe(true);
  const code = readFileSync(path.join(app, 'triggers.mjs'), 'utf8');
  const outside = [...code.matchAll(/^import .* from ["']([^"'.]+)["'];?$/gm)].map(([, name = '']) => name);
  expect(
    [...new Set(outside)].filter((name) => !/^(node:.*|@azure\/functions|[a-z_]+(\/[a-z_]+)?)$/.test(name)),
  ).toEqual([]);
});
