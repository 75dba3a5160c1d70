// Copies that storage has not finished, by its headers; the emulator finishes every copy at once.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { openPlainBlobs } from '../../../functions/store/blobs.ts';

/** Serves one answer to every request. */
async function serve(status: number, headers: Record<string, string>) {
  const server = createServer((_, response) => response.writeHead(status, headers).end()).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const account = `AccountName=test;AccountKey=${Buffer.from('test').toString('base64')}`;
  const endpoint = `BlobEndpoint=http://127.0.0.1:${port}/test`;
  return openPlainBlobs(`DefaultEndpointsProtocol=http;${account};${endpoint}`);
}

it.each([
  ['pending', 'pending'],
  ['failed', 'failed'],
  ['aborted', 'failed'],
  ['success', undefined],
])('C7 finds a blob whose copy is %s', async (status, copy) => {
  const blobs = await serve(200, { 'x-ms-copy-status': status, etag: '"1"' });
  expect((await blobs.find('models', 'a'))?.copy).toBe(copy);
});

const upload = { name: 'a', bytes: 1, etag: '"1"', metadata: {} };

it.each([
  ['is pending', 202, { 'x-ms-copy-status': 'pending' }],
  ['exists', 409, { 'x-ms-error-code': 'BlobAlreadyExists' }],
])('C7 reports no success when the destination %s', async (_, status, headers) => {
  const blobs = await serve(status, { ...headers, 'x-ms-copy-id': 'one' });
  expect(await blobs.copy('model-uploads', 'models', upload)).toBe(false);
});
