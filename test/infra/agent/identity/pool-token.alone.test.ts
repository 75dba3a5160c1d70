import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type JWK, jwtVerify, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { verifyPool } from '../../../../functions/caller/agent-caller.ts';
import { AUDIENCE, ISSUER, poolToken } from '../../../../infra/local/identity/tokens.ts';
import {
  type ClientSettings,
  openPoolToken,
  type PoolToken,
} from '../../../../infra/pool/agent/identity/pool-token.ts';
import { issuerBounds } from '../../../../shared/tenant/issuer.ts';
import { patience } from '../start-agent.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'auricle-token-'));
const file = (name: string, content: string) => {
  writeFileSync(path.join(folder, name), content);
  return path.join(folder, name);
};
const LIFE_S = 600;

let issuer: JWK;
let jwks: { keys: JWK[] };
/** Issuer of federated tokens, which the provider trusts. */
let platform: CryptoKeyPair;
let url: string;
let opened: PoolToken | undefined;
/** Bodies of token requests. */
const requests: Record<string, string>[] = [];
/** Replaces the next answers. */
const faults: (() => { status: number; body: unknown })[] = [];
const lines: string[] = [];

/** Token endpoint of an identity provider: it verifies the credential and issues a pool token. */
async function answer(body: URLSearchParams): Promise<{ status: number; body: unknown }> {
  const form = Object.fromEntries(body);
  requests.push(form);
  const fault = faults.shift();
  if (fault) return fault();
  const refused = { status: 401, body: { error: 'invalid_client', error_description: `not ${form.client_secret}` } };
  if (form.grant_type !== 'client_credentials' || form.client_id !== 'pool-eu') return refused;
  if (form.client_assertion_type === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer') {
    const verified = jwtVerify(form.client_assertion ?? '', platform.publicKey, { audience: 'provider' });
    if (!(await verified.then(() => true).catch(() => false))) return refused;
  } else if (form.client_secret !== 'the secret') return refused;
  const pool = { name: 'pool-eu', zone: 'eu' };
  const token = await poolToken(issuer, Math.floor(Date.now() / 1_000) + requests.length, pool);
  return { status: 200, body: { access_token: token, token_type: 'Bearer', expires_in: String(LIFE_S) } };
}

const provider = createServer(async (request, response) => {
  if (request.url === '/keys') return response.end(JSON.stringify(jwks));
  const { status, body } = await answer(new URLSearchParams(await text(request)));
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});

beforeAll(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true });
  issuer = { ...(await exportJWK(pair.privateKey)), kid: 'issuer' };
  jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'issuer' }] };
  platform = await generateKeyPair('RS256');
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/token`;
});
afterAll(() => {
  provider.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => {
  vi.useRealTimers();
  opened?.stop();
  for (const list of [requests, faults, lines]) list.length = 0;
});

function open(credential: ClientSettings['credential']): PoolToken {
  const log = (event: string, fields = {}) => void lines.push([event, ...Object.values(fields)].join(' '));
  const settings = { kind: 'client', url, client: 'pool-eu', scope: 'pool', audience: undefined, credential } as const;
  opened = openPoolToken(settings, { now: Date.now, log });
  return opened;
}
const openBySecret = (secret = 'the secret') => open({ kind: 'secret', file: file('secret', `${secret}\n`) });

it('C4 gets by its secret a pool token that the functions accept', async () => {
  const token = openBySecret();
  expect(() => token.read()).toThrow('no pool token yet');
  await token.first();
  const bounds = { tenants: undefined, scopes: ['pool' as const], types: issuerBounds.types.parse(undefined) };
  const row = { issuer: ISSUER, audience: AUDIENCE, algorithms: ['ES256' as const], ...bounds };
  const verify = (keys: { jwks: { keys: JWK[] } } | { jwksUrl: string }) =>
    verifyPool(`Bearer ${token.read()}`, { ISSUERS: [{ ...row, ...keys }], ATTESTATION: undefined }, Date.now());
  const accepted = { ok: true, value: { pool: 'pool-eu', zone: 'eu' } };
  expect(await verify({ jwks })).toEqual(accepted);
  expect(await verify({ jwksUrl: new URL('/keys', url).href })).toEqual(accepted);
  // An agent tries again: the keys of its issuer cannot be had.
  const unavailable = { ok: false, refusal: { reason: 'identity_unavailable' } };
  expect(await verify({ jwksUrl: 'http://127.0.0.1:9/keys' })).toMatchObject(unavailable);
  expect(requests).toMatchObject([{ scope: 'pool' }]);
});

it('C4 shows a federated token in place of a secret and reads renewed ones', async () => {
  const sign = () =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'RS256' })
      .setAudience('provider')
      .setExpirationTime('1h')
      .sign(platform.privateKey);
  const assertion = file('assertion', 'expired');
  const token = open({ kind: 'assertion', file: assertion });
  const first = token.first();
  await expect.poll(() => lines, patience).toEqual(['token-failed 401 invalid_client']);
  writeFileSync(assertion, await sign());
  await vi.advanceTimersByTimeAsync(1_000);
  await first;
  expect(token.read()).toMatch(/^ey/);
  expect(requests.some(({ client_secret }) => client_secret !== undefined)).toBe(false);
});

it('C4 renews the token at half its life and keeps it until then', async () => {
  const token = openBySecret();
  await token.first();
  const before = token.read();
  faults.push(() => ({ status: 503, body: {} }));
  await vi.advanceTimersByTimeAsync((LIFE_S * 1_000) / 2 + 1_000);
  await expect.poll(() => lines, patience).toEqual(['token-failed 503']);
  expect(token.read()).toBe(before);
  await vi.advanceTimersByTimeAsync(1_000);
  await expect.poll(() => token.read() === before, patience).toBe(false);
  expect(requests).toHaveLength(3);
});

it('C4 retries what is refused or no answer, and logs no secret', async () => {
  faults.push(
    () => ({ status: 200, body: { access_token: 'x', token_type: 'mac' } }),
    () => ({ status: 200, body: { access_token: 'no expiry', token_type: 'bearer' } }),
  );
  const token = openBySecret('another secret');
  const first = token.first();
  for (const count of [1, 2, 3]) {
    await expect.poll(() => lines.length, patience).toBe(count);
    if (count === 3) file('secret', 'the secret');
    await vi.advanceTimersByTimeAsync(5_000);
  }
  await first;
  expect(lines).toEqual(['token-failed ZodError', 'token-failed JWTInvalid', 'token-failed 401 invalid_client']);
  expect(lines.join()).not.toContain('secret');
});
