import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { ATTESTATION_S, verifyAttestation } from '../../../shared/seal/attestation.ts';
import { type AttestationPolicy, attestationPolicy } from '../../../shared/seal/attestation-policy.ts';
import { ATTESTATION_CHARACTERS } from '../../../shared/seal/limits.ts';
import { generateSealKey } from '../../../shared/seal/setup.ts';

const now = Date.UTC(2026, 10, 20, 12);
const seconds = now / 1000;
const measurement = 'ab'.repeat(32);
const demanded = 'wm9mHlvTU82e8UqoOy1Yj1FBRSNkfe99-69IYDq9eWs';
const azure = 'https://shared.weu.attest.azure.net';
const local = 'https://auricle.local/attestation';

const authority = await generateKeyPair('RS256', { extractable: true });
const pss = await generateKeyPair('PS256');
const other = await generateKeyPair('RS256', { extractable: true });
const jwks = { keys: [{ ...(await exportJWK(authority.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] };

const policy: AttestationPolicy = attestationPolicy.parse({
  issuers: [
    { issuer: azure, jwks, profile: 'azure-sevsnp', hostdata: [measurement], policies: [demanded] },
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
// The shape of Azure's sample for virtual machines: hostdata is zero, the runtime data is a base64 value, and
// both levels have keys that are not ours.
const inner = {
  ...flat,
  'x-ms-compliance-status': 'azure-compliant-cvm',
  'x-ms-sevsnpvm-hostdata': '00'.repeat(32),
  'x-ms-runtime': { keys: [{ kty: 'RSA', kid: 'HCLAkPub', e: 'AQAB', n: 'AQAB', key_ops: ['encrypt'] }] },
};
const nested = {
  ...blank(flat),
  secureboot: true,
  'x-ms-attestation-type': 'azurevm',
  'x-ms-azurevm-debuggersdisabled': true,
  'x-ms-azurevm-bootdebug-enabled': false,
  'x-ms-azurevm-kerneldebug-enabled': false,
  'x-ms-azurevm-testsigning-enabled': false,
  'x-ms-policy-hash': demanded,
  'x-ms-isolation-tee': inner,
  'x-ms-runtime': {
    'client-payload': { nonce: 'MTIzNA==', auricle: btoa(JSON.stringify(runtime)) },
    keys: [{ kty: 'RSA', kid: 'TpmEphemeralEncryptionKey', e: 'AQAB', n: 'AQAB', key_ops: ['encrypt'] }],
  },
};
const machine = (change: object) => ({ claims: { ...nested, ...change } });
const processor = (change: object) => machine({ 'x-ms-isolation-tee': { ...inner, ...change } });
const payload = (value: unknown) => machine({ 'x-ms-runtime': { 'client-payload': value } });
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
  it('a container group’s gives the keys it binds', async () => {
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

  it('a virtual machine’s nests the processor’s claims', async () => {
    const result = await verifyAttestation(await mint(machine({})), policy, now);
    expect(result).toMatchObject({ ok: true, value: { sealKey: publicJwk, signKey: signJwk, agent: 'pool-a-0' } });
  });

  it('the local stack’s counts only in development', async () => {
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
    ['an old measurement', { claims: { iat: seconds - ATTESTATION_S - 31 } }, 'iat'],
    ['another machine type', { claims: { 'x-ms-attestation-type': 'sgx' } }, 'x-ms-attestation-type'],
    ['no compliance', { claims: { 'x-ms-compliance-status': 'none' } }, 'x-ms-compliance-status'],
    [
      'the compliance of the other shape',
      { claims: { 'x-ms-compliance-status': 'azure-compliant-cvm' } },
      'x-ms-compliance-status',
    ],
    ['a debugger', { claims: { 'x-ms-sevsnpvm-is-debuggable': true } }, 'x-ms-sevsnpvm-is-debuggable'],
    ['"false" as text', { claims: { 'x-ms-sevsnpvm-is-debuggable': 'false' } }, 'x-ms-sevsnpvm-is-debuggable'],
    [
      'nothing about debugging',
      { claims: { 'x-ms-sevsnpvm-is-debuggable': undefined } },
      'x-ms-sevsnpvm-is-debuggable',
    ],
    ['a lower privilege level', { claims: { 'x-ms-sevsnpvm-vmpl': 1 } }, 'x-ms-sevsnpvm-vmpl'],
    ['other software', { claims: { 'x-ms-sevsnpvm-hostdata': '00'.repeat(32) } }, 'x-ms-sevsnpvm-hostdata'],
    ['flat claims and an empty processor', { claims: { 'x-ms-isolation-tee': {} } }, 'x-ms-attestation-type'],
    ['a processor that is no object', machine({ 'x-ms-isolation-tee': 'sevsnpvm' }), 'x-ms-attestation-type'],
    ['no secure boot', machine({ secureboot: false }), 'secureboot'],
    [
      'debuggers in the machine',
      machine({ 'x-ms-azurevm-debuggersdisabled': false }),
      'x-ms-azurevm-debuggersdisabled',
    ],
    ['debugging at boot', machine({ 'x-ms-azurevm-bootdebug-enabled': true }), 'x-ms-azurevm-bootdebug-enabled'],
    ['a kernel debugger', machine({ 'x-ms-azurevm-kerneldebug-enabled': true }), 'x-ms-azurevm-kerneldebug-enabled'],
    ['test signatures', machine({ 'x-ms-azurevm-testsigning-enabled': true }), 'x-ms-azurevm-testsigning-enabled'],
    ['a policy of somebody else', machine({ 'x-ms-policy-hash': 'A'.repeat(43) }), 'x-ms-policy-hash'],
    ['no policy', machine({ 'x-ms-policy-hash': undefined }), 'x-ms-policy-hash'],
    ['a machine of another type', processor({ 'x-ms-attestation-type': 'tdxvm' }), 'x-ms-attestation-type'],
    [
      'a machine without compliance',
      processor({ 'x-ms-compliance-status': 'azure-compliant-uvm' }),
      'x-ms-compliance-status',
    ],
    ['a machine with a debugger', processor({ 'x-ms-sevsnpvm-is-debuggable': true }), 'x-ms-sevsnpvm-is-debuggable'],
    ['a machine at a lower level', processor({ 'x-ms-sevsnpvm-vmpl': 2 }), 'x-ms-sevsnpvm-vmpl'],
    ['a payload of others', payload({ nonce: 'MTIzNA==' }), 'x-ms-runtime'],
    ['a payload that is not base64', payload({ auricle: '{}' }), 'x-ms-runtime'],
    ['a payload that is no JSON', payload({ auricle: btoa('{') }), 'x-ms-runtime'],
    ['a payload that is no object', payload('auricle'), 'x-ms-runtime'],
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
    expect(await detail('a'.repeat(ATTESTATION_CHARACTERS + 1))).toBe('attestation: too long');
  });

  it('without an allow-list of software is refused', async () => {
    const open: AttestationPolicy = { issuers: [{ issuer: azure, jwks, profile: 'azure-sevsnp' }], development: true };
    expect(await detail(await mint({}), open)).toBe('attestation: x-ms-sevsnpvm-hostdata');
    expect(await detail(await mint(machine({})), open)).toBe('attestation: x-ms-policy-hash');
  });

  it('is verified with the key set the policy names, fetched once', async () => {
    let fetched = 0;
    const server = createServer((_, response) => {
      fetched++;
      response.setHeader('content-type', 'application/json').end(JSON.stringify(jwks));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/certs`;
      const issuers: AttestationPolicy['issuers'] = [{ issuer: local, jwks: { url }, profile: 'development' }];
      const token = await mint({ claims: { iss: local } });
      expect(await detail(token, { issuers, development: true })).toBe('accepted');
      expect(await detail(token, { issuers, development: true })).toBe('accepted');
      expect(fetched).toBe(1);
    } finally {
      server.close();
    }
  });

  it('is believed only by a policy that makes sense', () => {
    const row = { issuer: azure, jwks, profile: 'azure-sevsnp' };
    for (const change of [
      { hostdata: [] },
      { hostdata: ['AB'.repeat(32)] },
      { policies: [] },
      { algorithms: ['HS256'] },
      { jwks: { keys: [] } },
      { jwks: { url: 'http://plain.example/certs' } },
      { profile: 'guess' },
    ])
      expect(attestationPolicy.safeParse({ issuers: [{ ...row, ...change }] }).success).toBe(false);
    expect(attestationPolicy.parse({ issuers: [row] }).development).toBe(false);
    expect(attestationPolicy.safeParse({ issuers: [] }).success).toBe(false);
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
