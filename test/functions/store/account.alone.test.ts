// Storage by the identity of the app. The emulator knows neither tokens nor delegated keys, so storage is a double.
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { IdentityAccount } from '../../../functions/store/account.ts';
import { openBlobs } from '../../../functions/store/blobs.ts';
import { openNotices } from '../../../functions/store/notices.ts';
import { openTable } from '../../../functions/store/table-rows.ts';
import { makeCertificate } from '../../fake/certificate.ts';

const HOUR_MS = 3_600_000;
const delegated = Buffer.alloc(32, 7).toString('base64');
/** Requests: method, path and query, and the bearer token. */
const requests: string[] = [];
const scopes: string[] = [];
let isRefused = false;
let account: IdentityAccount;

const server = createServer(makeCertificate(), async (request, response) => {
  const body = await new Response(request as unknown as ReadableStream).text();
  requests.push(`${request.method} ${request.url} ${request.headers.authorization}`);
  if (!request.url?.includes('userdelegationkey')) return response.writeHead(201).end();
  if (isRefused) return response.writeHead(403, { 'x-ms-error-code': 'AuthorizationPermissionMismatch' }).end();
  const [, start, end] = /<Start>(.*)<\/Start><Expiry>(.*)<\/Expiry>/.exec(body) ?? [];
  const ids = '<SignedOid>app</SignedOid><SignedTid>tenant</SignedTid>';
  const times = `<SignedStart>${start}</SignedStart><SignedExpiry>${end}</SignedExpiry>`;
  const rest = `<SignedService>b</SignedService><SignedVersion>2024-05-04</SignedVersion><Value>${delegated}</Value>`;
  response.writeHead(200, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0"?><UserDelegationKey>${ids}${times}${rest}</UserDelegationKey>`);
});

beforeAll(async () => {
  // The clients of storage send tokens over TLS only, and the certificate of the double is no public one.
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/account`;
  const credential = {
    async getToken(scope: string | string[]) {
      scopes.push(String(scope));
      return { token: 'app-token', expiresOnTimestamp: Date.now() + HOUR_MS };
    },
  };
  account = { blobs: url, queues: url, tables: url, credential };
});
afterAll(() => {
  vi.unstubAllEnvs();
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  isRefused = false;
  requests.length = 0;
});

it('T7 shows the token of the identity to blobs, queues and tables', async () => {
  await openBlobs(account).create('uploads', 'a', new Uint8Array(1));
  await openNotices(account).ensure(AbortSignal.timeout(5_000));
  await openTable(account, 'uploads').ensure(AbortSignal.timeout(5_000));
  expect(requests.map((line) => line.replace(/ \/account/, ' '))).toEqual([
    'PUT /uploads/a Bearer app-token',
    'PUT /upload-notices?timeout=30 Bearer app-token',
    'POST /Tables Bearer app-token',
  ]);
  expect(scopes).toContain('https://storage.azure.com/.default');
});

it('T7 signs addresses with one delegated key while it outlives them', async () => {
  const blobs = openBlobs(account);
  const sign = (hours: number) => blobs.address('uploads', 'a b', 'create', Date.now() + hours * HOUR_MS);
  const [one, two] = await Promise.all([sign(1), sign(12)]);
  const query = new URL(one).searchParams;
  expect(Object.fromEntries(query)).toMatchObject({ sp: 'c', sr: 'b', skoid: 'app', sktid: 'tenant', sks: 'b' });
  expect(new URL(two).pathname).toBe('/account/uploads/a%20b');
  await sign(20);
  expect(requests).toHaveLength(1);
  // Storage accepts no key for longer than that.
  const [from, until] = [query.get('skt'), query.get('ske')].map((time) => Date.parse(time ?? ''));
  expect((until ?? 0) - (from ?? 0)).toBeLessThan(7 * 24 * HOUR_MS);
  await sign(25);
  expect(requests).toHaveLength(2);
});

it('T7 asks for the key again after storage refused it', async () => {
  const blobs = openBlobs(account);
  const sign = () => blobs.address('uploads', 'a', 'read', Date.now() + HOUR_MS);
  isRefused = true;
  await expect(sign()).rejects.toMatchObject({ statusCode: 403 });
  isRefused = false;
  expect(await sign()).toContain('&skoid=app');
});
