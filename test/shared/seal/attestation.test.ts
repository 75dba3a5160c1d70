import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { limits } from '../../../shared/limits.ts';
import { verifyAttestation } from '../../../shared/seal/attestation.ts';
import { type AttestationPolicy, attestationPolicy } from '../../../shared/seal/attestation-policy.ts';
import { generateSealKey } from '../../../shared/seal/setup.ts';

const now = Date.UTC(2026, 10, 20, 12);
const seconds = now / 1000;
const measurement = 'ab'.repeat(32);
const azure = 'https://shared.weu.attest.azure.net';
const local = 'https://auricle.local/attestation';

const authority = await generateKeyPair('RS256', { extractable: true });
const pss = await generateKeyPair('PS256');
const other = await generateKeyPair('RS256', { extractable: true });
const jwks = { keys: [{ ...(await exportJWK(authority.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] };

const policy: AttestationPolicy = attestationPolicy.parse({
  issuers: [
    { issuer: azure, jwks, profile: 'azure-sevsnp', hostdata: [measurement] },
    { issuer: local, jwks, profile: 'development' },
  ],
  development: true,
});

const { publicJwk } = await generateSealKey();
const { kty, crv, x, y } = await exportJWK((await generateKeyPair('ES256', { extractable: true })).publicKey);
const signJwk = { kty, crv, x, y, use: 'sig' };
const runtime = { keys: [publicJwk, signJwk], suites: [5], agent: 'pool-a-0' };

const flat = {
  'x-ms-attestation-type': 'sevsnpvm',
  'x-ms-compliance-status': 'azure-compliant-uvm',
  'x-ms-sevsnpvm-is-debuggable': false,
  'x-ms-sevsnpvm-vmpl': 0,
  'x-ms-sevsnpvm-hostdata': measurement,
};
const inner = { ...flat, 'x-ms-compliance-status': 'azure-compliant-cvm' };
const nested = { 'x-ms-attestation-type': 'azurevm', secureboot: true, 'x-ms-isolation-tee': inner };
const times = { iat: seconds - 60, nbf: seconds - 60, exp: seconds + 3600 };

interface Change {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  key?: CryptoKey | Uint8Array;
}
const mint = ({ claims = {}, header = {}, key = authority.privateKey }: Change) =>
  new SignJWT({ iss: azure, ...times, ...flat, 'x-ms-runtime': runtime, ...claims } as JWTPayload)
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: 'one', ...header })
    .sign(key);

const detail = async (token: string, under: AttestationPolicy = policy, at = now) => {
  const result = await verifyAttestation(token, under, at);
  if (result.ok) return 'accepted';
  expect(result.refusal.reason).toBe('attestation_invalid');
  return result.refusal.detail;
};

describe('A21 C5 attestation', () => {
  it('of a container group gives the keys it binds', async () => {
    const result = await verifyAttestation(await mint({}), policy, now);
    expect(result).toEqual({
      ok: true,
      value: {
        sealKey: publicJwk,
        signKey: signJwk,
        suites: [5],
        agent: 'pool-a-0',
        issuer: azure,
        expires: seconds + 3600,
      },
    });
  });

  it('of a virtual machine has the claims of the processor nested', async () => {
    const token = await mint({ claims: { ...blank(flat), ...nested } });
    expect(await detail(token)).toBe('accepted');
  });

  it('of the local stack counts only in development', async () => {
    const token = await mint({ claims: { ...blank(flat), iss: local, nbf: undefined } });
    expect(await detail(token)).toBe('accepted');
    expect(await detail(token, { ...policy, development: false })).toBe('attestation: development issuer');
  });

  it.each<[string, Change, string]>([
    ['another issuer', { claims: { iss: 'https://evil.example' } }, 'issuer is not trusted'],
    ['no issuer', { claims: { iss: undefined } }, 'issuer is not trusted'],
    ['a forged signature', { key: other.privateKey }, 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED'],
    ['an unknown key', { header: { kid: 'two', jku: 'https://evil.example/certs' } }, 'ERR_JWKS_NO_MATCHING_KEY'],
    ['a shared secret', { header: { alg: 'HS256' }, key: new Uint8Array(32) }, 'ERR_JOSE_ALG_NOT_ALLOWED'],
    ['an algorithm not pinned', { header: { alg: 'PS256' }, key: pss.privateKey }, 'ERR_JOSE_ALG_NOT_ALLOWED'],
    ['an end in the past', { claims: { exp: seconds - 31 } }, 'exp'],
    ['a start in the future', { claims: { nbf: seconds + 31 } }, 'nbf'],
    ['no end', { claims: { exp: undefined } }, 'exp'],
    ['no start', { claims: { nbf: undefined } }, 'nbf'],
    ['an old measurement', { claims: { iat: seconds - limits.attestationSeconds.value - 31 } }, 'iat'],
    ['another machine type', { claims: { 'x-ms-attestation-type': 'sgx' } }, 'x-ms-attestation-type'],
    ['no compliance', { claims: { 'x-ms-compliance-status': 'none' } }, 'x-ms-compliance-status'],
    ['the compliance of the other shape', { claims: inner }, 'x-ms-compliance-status'],
    ['a debugger', { claims: { 'x-ms-sevsnpvm-is-debuggable': true } }, 'x-ms-sevsnpvm-is-debuggable'],
    ['"false" as text', { claims: { 'x-ms-sevsnpvm-is-debuggable': 'false' } }, 'x-ms-sevsnpvm-is-debuggable'],
    [
      'nothing about debugging',
      { claims: { 'x-ms-sevsnpvm-is-debuggable': undefined } },
      'x-ms-sevsnpvm-is-debuggable',
    ],
    ['a lower privilege level', { claims: { 'x-ms-sevsnpvm-vmpl': 1 } }, 'x-ms-sevsnpvm-vmpl'],
    ['other software', { claims: { 'x-ms-sevsnpvm-hostdata': '00'.repeat(32) } }, 'x-ms-sevsnpvm-hostdata'],
    ['no secure boot', { claims: { ...nested, secureboot: false } }, 'secureboot'],
    ['flat claims of a machine that is nested', { claims: { 'x-ms-isolation-tee': {} } }, 'x-ms-attestation-type'],
    ['no processor', { claims: { ...nested, 'x-ms-isolation-tee': {} } }, 'x-ms-attestation-type'],
    ['no runtime data', { claims: { 'x-ms-runtime': undefined } }, 'x-ms-runtime'],
    ['no key to seal to', { claims: withKeys([signJwk]) }, 'x-ms-runtime: not one key for sealing'],
    [
      'two keys to seal to',
      { claims: withKeys([publicJwk, publicJwk, signJwk]) },
      'x-ms-runtime: not one key for sealing',
    ],
    ['no key to sign with', { claims: withKeys([publicJwk]) }, 'x-ms-runtime: not one key for signing'],
    ['a private key', { claims: withKeys([{ ...publicJwk, d: x }, signJwk]) }, 'x-ms-runtime: not one key for sealing'],
    [
      'a key off the curve',
      { claims: withKeys([{ ...publicJwk, y: x }, signJwk]) },
      'x-ms-runtime: a key is not valid',
    ],
  ])('with %s is refused', async (_, change, check) => {
    expect(await detail(await mint(change))).toBe(`attestation: ${check}`);
  });

  it('that is no token, or endless, is refused', async () => {
    expect(await detail('not a token')).toBe('attestation: ERR_JWT_INVALID');
    expect(await detail('a'.repeat(limits.attestationCharacters.value + 1))).toBe('attestation: too long');
  });

  it('without an allow-list of software is refused', async () => {
    const issuers: AttestationPolicy['issuers'] = [{ issuer: azure, jwks, profile: 'azure-sevsnp' }];
    expect(await detail(await mint({}), { issuers, development: true })).toBe('attestation: x-ms-sevsnpvm-hostdata');
  });

  it('is refused when the keys of its issuer cannot be had', async () => {
    const result = await verifyAttestation(
      await mint({}),
      policy,
      now,
      () => () => Promise.reject(new Error('secret')),
    );
    expect(result).toMatchObject({ refusal: { detail: 'attestation: the keys of the issuer cannot be had' } });
  });
});

function withKeys(keys: unknown[]): Record<string, unknown> {
  return { 'x-ms-runtime': { ...runtime, keys } };
}

function blank(claims: object): Record<string, unknown> {
  return Object.fromEntries(Object.keys(claims).map((claim) => [claim, undefined]));
}
