import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createLocalJWKSet, decodeJwt, exportJWK, generateKeyPair, jwtVerify } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { commandLine } from '../../../infra/cli/command-line.ts';
import { AUDIENCE, developmentToken, ISSUER } from '../../../infra/local/identity/tokens.ts';

const state = mkdtempSync(path.join(os.tmpdir(), 'auricle-token-'));
let keys: ReturnType<typeof createLocalJWKSet>;
beforeAll(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true });
  const key = { ...(await exportJWK(pair.privateKey)), kid: 'issuer-1', alg: 'ES256' };
  keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'issuer-1', alg: 'ES256' }] });
  mkdirSync(path.join(state, 'identity'));
  writeFileSync(path.join(state, 'identity', 'issuer.private.jwk.json'), JSON.stringify(key));
  writeFileSync(path.join(state, 'token'), `${await developmentToken(key, 1_800_000_000, ['eu'])}\n`);
});
afterAll(() => rmSync(state, { recursive: true }));

const run = (...words: string[]) => commandLine(words, {});

it('A1 prints a token of the local stack with the given claims', async () => {
  const own = ['tenant=acme', 'scope=transcribe models', 'zones=["us"]', 'allowance.requestsPerMinute=10'];
  const { exit, out } = await run('token', ...own, '--state', state);
  expect(exit).toBe(0);
  const { payload, protectedHeader } = await jwtVerify(out.trim(), keys, { issuer: ISSUER, audience: AUDIENCE });
  expect(protectedHeader).toMatchObject({ typ: 'at+jwt', kid: 'issuer-1' });
  expect(payload).toMatchObject({ tenant: 'acme', scope: 'transcribe models', zones: ['us'], sub: 'developer' });
  expect(payload.allowance).toEqual({ requestsPerMinute: 10 });
  const checked = await run('token', 'check', '--token', out.trim());
  expect(checked.out).toMatch(/^tenant +acme$/m);
  expect(checked.out).toMatch(/^scopes +transcribe models$/m);
});

it.each([
  [['token', 'keepDays=-1'], 2, 'no edge takes such a token: claims: keepDays'],
  [['token', 'nonsense'], 2, '"nonsense" is not CLAIM=VALUE'],
  [['token', '--state', '/nowhere'], 1, 'there is no local stack in /nowhere'],
])('A1 refuses %j', async (words, status, text) => {
  const { exit, err } = await run(...(words.includes('--state') ? words : [...words, '--state', state]));
  expect([exit, err]).toEqual([status, expect.stringContaining(text)]);
});

it('A1 shows why an edge refuses a token', async () => {
  const { out } = await run('token', '--state', state);
  const [head, , signature] = out.trim().split('.');
  const { tenant: _, ...claims } = decodeJwt(out.trim());
  const body = Buffer.from(JSON.stringify(claims)).toString('base64url');
  const { exit, err } = await run('token', 'check', '--token', `${head}.${body}.${signature}`);
  expect([exit, err.trim()]).toEqual([1, 'an edge refuses the token: claims: tenant']);
  expect((await run('token', 'check', '--token', 'abc')).exit).toBe(2);
});
