import {
  constants,
  createCipheriv,
  createPrivateKey,
  createPublicKey,
  type JsonWebKeyInput,
  publicEncrypt,
  randomBytes,
} from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createHttpHeaders, type PipelineRequest, type PipelineResponse, RestError } from '@azure/core-rest-pipeline';
import { decodeJwt, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { requestFromVault } from '../../../../infra/pool/agent/identity/release-vault.ts';
import { createZoneKeyring } from '../../../../infra/pool/agent/identity/zone-key.ts';
import { generateZoneKey } from '../../../../shared/seal/zone-key.ts';

const VAULT = 'https://zones.vault.azure.net';
const folder = mkdtempSync(path.join(tmpdir(), 'auricle-vault-'));
const zoneKeysFile = path.join(folder, 'zone-keys.json');
const version = (digit: string) => digit.repeat(32);

type Pair = Awaited<ReturnType<typeof generateZoneKey>>;
let newest: Pair;
let older: Pair;
/** Keys of the vault by their path. */
let held: Record<string, JsonWebKey>;
/** Replaces the answers. */
let fault: number | 'cut' | undefined;
let attests: boolean;
const requests: string[] = [];

beforeAll(async () => {
  [newest, older] = [await generateZoneKey(), await generateZoneKey()];
});
beforeEach(() => {
  held = {
    [`/keys/zone-eu/${version('2')}`]: newest.privateJwk,
    [`/keys/zone-eu/${version('1')}`]: older.privateJwk,
  };
  fault = undefined;
  attests = true;
  requests.length = 0;
  const eu = [
    { ...newest.zoneKey, vaultKey: `zone-eu/${version('2')}` },
    { ...older.zoneKey, vaultKey: `zone-eu/${version('1')}` },
  ];
  writeFileSync(zoneKeysFile, JSON.stringify({ eu }));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Wraps as the enclave of a vault does: the RSA key comes from the claims of the attestation. */
function wrap(privateJwk: JsonWebKey, attestation: string): Buffer {
  const { 'x-ms-runtime': runtime } = decodeJwt<{ 'x-ms-runtime': { keys: JsonWebKey[] } }>(attestation);
  const key = runtime.keys.find(({ kty, key_ops }) => kty === 'RSA' && key_ops?.includes('encrypt'));
  const publicKey = createPublicKey({ key, format: 'jwk' } as JsonWebKeyInput);
  const kek = randomBytes(32);
  const oaep = { key: publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
  const cipher = createCipheriv('aes256-wrap-pad', kek, Buffer.from('a65959a6', 'hex'));
  const der = createPrivateKey({ key: privateJwk, format: 'jwk' } as JsonWebKeyInput).export({
    type: 'pkcs8',
    format: 'der',
  });
  return Buffer.concat([publicEncrypt(oaep, kek), cipher.update(der), cipher.final()]);
}

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** "Release Key" of the REST interface, and the challenge that names the resource of tokens. */
function answerOf(request: PipelineRequest): { status: number; headers?: Record<string, string>; body?: unknown } {
  const { pathname } = new URL(request.url);
  if (!request.headers.get('authorization')) {
    const challenge = 'Bearer authorization="https://login.example/tenant", resource="https://vault.azure.net"';
    return { status: 401, headers: { 'www-authenticate': challenge } };
  }
  requests.push(`${request.method} ${pathname}`);
  if (fault === 'cut') throw new RestError('the connection was cut', { code: 'ECONNRESET' });
  if (fault !== undefined) return { status: fault, body: { error: { code: 'Forbidden' } } };
  const privateJwk = held[pathname.replace(/\/release$/, '')];
  if (!privateJwk) return { status: 404 };
  const { target, enc } = JSON.parse(String(request.body)) as { target: string; enc: string };
  const header = { kid: 'TpmEphemeralEncryptionKey', alg: 'dir', enc };
  const ciphertext = wrap(privateJwk, target).toString('base64url');
  const key_hsm = base64url({ schema_version: '1.0', header, ciphertext });
  const key = { kid: `${VAULT}${pathname}`, kty: 'EC-HSM', crv: 'P-256', key_ops: ['sign'], key_hsm };
  const payload = { request: { 'api-version': '7.4', enc, kid: key.kid }, response: { key: { key } } };
  // The agent reads the payload only: any signature does.
  return { status: 200, body: { value: `${new UnsecuredJWT(payload).encode()}c2ln` } };
}

const sendRequest = async (request: PipelineRequest): Promise<PipelineResponse> => {
  const { status, headers, body = {} } = answerOf(request);
  const sent = createHttpHeaders({ 'content-type': 'application/json', ...headers });
  return { request, status, headers: sent, bodyAsText: JSON.stringify(body) };
};

const keyring = () =>
  createZoneKeyring({
    zoneKeysFile,
    zone: 'eu',
    request: requestFromVault({
      vault: VAULT,
      agent: 'pool-eu-0',
      now: Date.now,
      credential: { getToken: async () => ({ token: 'token', expiresOnTimestamp: Date.now() + 3_600_000 }) },
      client: { httpClient: { sendRequest }, retryOptions: { maxRetries: 0 } },
      async attest(runtime) {
        if (!attests) throw new Error('no sidecar');
        return { token: new UnsecuredJWT({ 'x-ms-runtime': { ...runtime } }).encode(), expires: 0 };
      },
    }),
  });

it('A21 T7 a key vault releases all versions of the zone key to the attested key', async () => {
  const ring = keyring();
  const released = await ring.held();
  expect(released.ok && [...released.value.keys()]).toEqual([newest.zoneKey.kid, older.zoneKey.kid]);
  expect((await ring.held()).ok).toBe(true);
  expect(requests).toEqual([
    `POST /keys/zone-eu/${version('2')}/release`,
    `POST /keys/zone-eu/${version('1')}/release`,
  ]);
});

const refusedWith = (what: string) => ({ ok: false, refusal: { reason: what } });

it('A21 names why a key vault releases nothing, and asks it again', async () => {
  const ring = keyring();
  for (const [status, reason] of [
    [403, 'attestation_invalid'],
    [401, 'token_invalid'],
    [404, 'seal_broken'],
    [429, 'uploads_unavailable'],
    ['cut', 'uploads_unavailable'],
  ] as const) {
    fault = status;
    expect(await ring.held()).toMatchObject(refusedWith(reason));
  }
  fault = undefined;
  expect((await ring.held()).ok).toBe(true);
});

it('A21 refuses a foreign key of the vault, and a zone key without a vaultKey', async () => {
  held[`/keys/zone-eu/${version('2')}`] = (await generateZoneKey()).privateJwk;
  expect(await keyring().held()).toMatchObject(refusedWith('seal_broken'));
  writeFileSync(zoneKeysFile, JSON.stringify({ eu: [newest.zoneKey] }));
  expect(await keyring().held()).toMatchObject(refusedWith('seal_broken'));
});

it('A21 requests nothing of the vault without an attestation', async () => {
  attests = false;
  expect(await keyring().held()).toMatchObject(refusedWith('uploads_unavailable'));
  expect(requests).toEqual([]);
});
