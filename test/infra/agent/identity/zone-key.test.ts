import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUDIENCE, ISSUER, poolToken } from '../../../../infra/local/identity/tokens.ts';
import { createAuthority, statusOf } from '../../../../infra/local/release/authority.ts';
import { createAttest } from '../../../../infra/pool/agent/identity/attest.ts';
import { createKeys, type Keys } from '../../../../infra/pool/agent/identity/keys.ts';
import { requestFromAuthority } from '../../../../infra/pool/agent/identity/release-authority.ts';
import { createZoneKeyring } from '../../../../infra/pool/agent/identity/zone-key.ts';
import { createEnvelope, readHead, unwrapHead } from '../../../../shared/seal/envelope.ts';
import { generateZoneKey, type ZoneKey } from '../../../../shared/seal/zone-key.ts';

const now = Date.UTC(2026, 10, 20, 12);
const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-zone-key-'));
const file = (name: string) => path.join(folder, name);
const put = (name: string, value: unknown) => writeFileSync(file(name), JSON.stringify(value));
const attestationIssuer = 'https://attestation.auricle.local';

let keys: Keys;
let zones: Record<string, { zoneKey: ZoneKey; privateJwk: JsonWebKey }[]>;
let issuer: { privateKey: JWK; jwks: { keys: JWK[] } };
let attestationJwks: { keys: JWK[] };

async function keyPair(alg: 'ES256' | 'RS256', kid: string) {
  const pair = await generateKeyPair(alg, { extractable: true });
  const common = { kid, alg };
  return {
    privateKey: { ...(await exportJWK(pair.privateKey)), ...common },
    jwks: { keys: [{ ...(await exportJWK(pair.publicKey)), ...common }] },
  };
}

async function bootKeys(agent: string): Promise<Keys> {
  const attest = createAttest({ kind: 'development', keyFile: file('attestation'), issuer: attestationIssuer });
  const own = await createKeys(agent, attest);
  await own.renew(now);
  return own;
}

beforeAll(async () => {
  const attestation = await keyPair('RS256', 'attestation');
  put('attestation', attestation.privateKey);
  attestationJwks = attestation.jwks;
  issuer = await keyPair('ES256', 'issuer');
  zones = { eu: [await generateZoneKey()], us: [await generateZoneKey()] };
  put('zone-keys', Object.fromEntries(Object.entries(zones).map(([zone, all]) => [zone, all.map((k) => k.zoneKey)])));
  for (const zone of ['eu', 'us']) {
    const token = await poolToken(issuer.privateKey, Math.floor(now / 1_000), { name: `pool-${zone}`, zone });
    writeFileSync(file(`token-${zone}`), token);
  }
  keys = await bootKeys('pool-eu-0');
});
afterAll(() => rmSync(folder, { recursive: true }));

const lines: string[] = [];

function authority(development = true, held = zones) {
  const policy = {
    issuers: [{ issuer: attestationIssuer, profile: 'development' as const, jwks: attestationJwks as never }],
    development,
  };
  return createAuthority({
    policy,
    issuer: { issuer: ISSUER, audience: AUDIENCE, jwks: issuer.jwks },
    keys: Object.fromEntries(Object.entries(held).map(([zone, all]) => [zone, all.map((k) => k.privateJwk)])),
    log: (line) => lines.push(line),
  });
}

/** The authority behind `fetch`, and what was asked of it. */
function serve(release = authority(), at = now) {
  const asked: { authorization: string; body: unknown }[] = [];
  const send: typeof fetch = async (_, init) => {
    const authorization = new Headers(init?.headers).get('authorization') ?? '';
    const body: unknown = JSON.parse(String(init?.body));
    asked.push({ authorization, body });
    const answer = await release(authorization, body, at);
    if (answer.ok) return Response.json(answer.value);
    return Response.json({ error: { code: answer.refusal.reason } }, { status: statusOf(answer.refusal) });
  };
  return { asked, send };
}

interface Change {
  readonly zone?: string;
  readonly keys?: Keys;
  readonly tokenFile?: string;
  readonly zoneKeysFile?: string;
}

function keyring(send: typeof fetch, change: Change = {}) {
  const { zone = 'eu', keys: own = keys, tokenFile = 'token-eu', zoneKeysFile = 'zone-keys' } = change;
  const token = () => readFileSync(file(tokenFile), 'utf8');
  const url = 'http://release.test';
  const request = requestFromAuthority({ url, zone, keys: own, token, now: () => now, fetch: send });
  return createZoneKeyring({ zoneKeysFile: file(zoneKeysFile), zone, request });
}

const facts = { tenant: 'dev', upload: '01890a5d-ac96-774b-bcce-b302099a8057', name: 'upload' };

describe('C5 A21 T4 the key of a zone', () => {
  it('is released to an attested agent once, and opens its zone’s files only', async () => {
    const { asked, send } = serve();
    const ring = keyring(send);
    const [one, two] = await Promise.all([ring.held(), ring.held()]);
    expect(await ring.held()).toEqual(one);
    expect(two).toEqual(one);
    expect(asked).toHaveLength(1);
    if (!one.ok) throw new Error('refused');
    for (const [zone, opens] of [
      ['eu', true],
      ['us', false],
    ] as const) {
      const zoneKey = zones[zone]?.[0]?.zoneKey as ZoneKey;
      const head = readHead((await createEnvelope(facts, zoneKey)).head);
      if (!head.ok) throw new Error('no head');
      expect((await unwrapHead(head.value.head, facts, (kid) => one.value.get(kid))).ok).toBe(opens);
    }
    expect(lines.at(-1)).toBe('released eu to pool-eu-0 of pool-eu');
  });

  it('is fetched again when the settings name a newer one', async () => {
    const newer = await generateZoneKey();
    const later = { ...zones, eu: [newer, ...(zones.eu ?? [])] };
    const { asked, send } = serve(authority(true, later));
    const ring = keyring(send);
    await ring.held();
    await ring.held(newer.zoneKey.kid);
    expect(asked).toHaveLength(1);
    put('zone-keys-2', { eu: later.eu.map((key) => key.zoneKey) });
    const renewed = keyring(send, { zoneKeysFile: 'zone-keys-2' });
    const held = await renewed.held(newer.zoneKey.kid);
    expect(held.ok && [...held.value.keys()]).toEqual(later.eu.map((key) => key.zoneKey.kid));
    expect(renewed.find(newer.zoneKey.kid)).toEqual(newer.zoneKey);
  });

  it('cannot be moved between requests, agents or attestations', async () => {
    const { asked, send } = serve();
    await keyring(send).held();
    const release = authority();
    const [first] = asked as [{ authorization: string; body: { attestation: string; proof: string } }];
    const answer = await release(first.authorization, first.body, now);
    if (!answer.ok) throw new Error('refused');
    const replayed: typeof fetch = async () => Response.json(answer.value);
    expect(await keyring(replayed).held()).toMatchObject({ refusal: { reason: 'seal_broken' } });
    const other = await bootKeys('pool-eu-1');
    expect(await keyring(replayed, { keys: other }).held()).toMatchObject({ refusal: { reason: 'seal_broken' } });
    const mixed = { attestation: other.current().token, proof: first.body.proof };
    expect(await release(first.authorization, mixed, now)).toMatchObject({
      refusal: { reason: 'attestation_invalid', detail: 'release: the request is not signed by the attested key' },
    });
  });

  it('R1 is not given to a pool of another zone, whatever the agent says', async () => {
    const { send } = serve();
    expect(await keyring(send, { tokenFile: 'token-us' }).held()).toMatchObject({
      refusal: { reason: 'zone_unserved' },
    });
    expect(await keyring(send, { zone: 'us' }).held()).toMatchObject({ refusal: { reason: 'zone_unserved' } });
  });

  it('is refused without attestation, with an old request, or without pool token', async () => {
    const told = async (send: typeof fetch, change = {}) => {
      const held = await keyring(send, change).held();
      return held.ok ? 'held' : held.refusal.reason;
    };
    expect(await told(serve(authority(false)).send)).toBe('attestation_invalid');
    expect(await told(serve(authority(), now + 61_000).send)).toBe('attestation_invalid');
    expect(await told(serve(authority(), now - 31_000).send)).toBe('attestation_invalid');
    writeFileSync(file('token-none'), 'not-a-token');
    expect(await told(serve().send, { tokenFile: 'token-none' })).toBe('token_invalid');
    const unsigned = { ...keys, sign: async () => 'a.b.c' };
    expect(await told(serve().send, { keys: unsigned })).toBe('attestation_invalid');
    const mistyped = { ...keys, sign: (payload: unknown) => keys.sign(payload) };
    expect(await told(serve().send, { keys: mistyped })).toBe('attestation_invalid');
    expect(await authority()('Bearer x', {}, now)).toMatchObject({ refusal: { reason: 'token_invalid' } });
  });

  it('a foreign key is refused: it would open what the agent seals', async () => {
    const theirs = { eu: [await generateZoneKey()] };
    expect(await keyring(serve(authority(true, theirs)).send).held()).toMatchObject({
      refusal: { reason: 'seal_broken', detail: 'release: not the key of the zone' },
    });
  });

  it('that cannot be had is a matter of time', async () => {
    const down: typeof fetch = () => Promise.reject(new Error('refused'));
    const odd: typeof fetch = async () => Response.json({ v: 2 });
    const page: typeof fetch = async () => new Response('<html>', { status: 502 });
    for (const send of [down, odd, page])
      expect(await keyring(send).held()).toMatchObject({ refusal: { reason: 'uploads_unavailable' } });
    const ring = keyring(serve().send);
    expect((await ring.held()).ok).toBe(true);
  });

  it('never shows in what the authority logs', () => {
    expect(lines.join('\n')).not.toMatch(/ey[A-Za-z0-9_-]{10}/);
    for (const { privateJwk } of Object.values(zones).flat()) expect(lines.join('\n')).not.toContain(privateJwk.d);
  });
});
