import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { publicHalf } from '../../../infra/identity/keys.ts';
import { makeIdentity } from '../../../infra/local/identity/make.ts';
import { AUDIENCE, ISSUER } from '../../../infra/local/identity/tokens.ts';
import { readClaims } from '../../../shared/tenant/claims.ts';
import { folderForTest } from './folder.ts';

const pools = [{ name: 'aks-westeurope', zone: 'eu' }];
const checks = { issuer: ISSUER, audience: AUDIENCE, algorithms: ['ES256'] };

describe('identity of the local stack', () => {
  it('is kept: a second start has the same keys', async () => {
    const state = folderForTest();
    const [first, second] = [await makeIdentity(state, pools), await makeIdentity(state, pools)];
    expect(second.issuer.jwks).toEqual(first.issuer.jwks);
    expect(second.attestation.privateKey).toEqual(first.attestation.privateKey);
  });

  it('is readable by its owner only', async () => {
    const state = folderForTest();
    await makeIdentity(state, pools);
    const files = readdirSync(state, { recursive: true, withFileTypes: true });
    expect(files.length).toBeGreaterThan(6);
    for (const file of files) {
      const mode = statSync(path.join(file.parentPath, file.name)).mode & 0o777;
      expect([file.name, mode.toString(8)]).toEqual([file.name, file.isDirectory() ? '700' : '600']);
    }
  });

  it('publishes no private half', async () => {
    const { issuer, attestation, ticket } = await makeIdentity(folderForTest(), pools);
    for (const key of [issuer, attestation, ticket]) {
      const published = JSON.parse(readFileSync(key.publicFile, 'utf8')).keys[0];
      expect(Object.keys(published).filter((name) => ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k'].includes(name))).toEqual(
        [],
      );
      expect(published.kid).toBe(key.privateKey.kid);
    }
    expect(publicHalf({ kty: 'EC', crv: 'P-256', x: 'x', y: 'y', d: 'secret' })).not.toHaveProperty('d');
  });

  it('makes a development token with the claims that the edge reads', async () => {
    const both = [...pools, { name: 'eks-us-east-1', zone: 'us' }];
    const { token, tokenFile, issuer } = await makeIdentity(folderForTest(), both);
    expect(readFileSync(tokenFile, 'utf8').trim()).toBe(token);
    const { payload } = await jwtVerify(token, createLocalJWKSet(issuer.jwks), checks);
    const claims = readClaims(payload);
    expect(claims).toMatchObject({ ok: true, value: { tenant: 'dev', zones: ['eu', 'us'], languages: ['*'] } });
    expect(String(payload.scope).split(' ')).not.toContain('pool');
  });

  it('gives each pool a token for its zone that is no tenant', async () => {
    const { poolTokenFiles, issuer } = await makeIdentity(folderForTest(), pools);
    const token = readFileSync(poolTokenFiles['aks-westeurope'] as string, 'utf8').trim();
    const { payload } = await jwtVerify(token, createLocalJWKSet(issuer.jwks), checks);
    expect(payload).toMatchObject({ scope: 'pool', pool: 'aks-westeurope', zone: 'eu' });
    expect(readClaims(payload)).toMatchObject({ ok: false });
  });
});
