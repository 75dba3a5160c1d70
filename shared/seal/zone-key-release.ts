import { base64url, compactVerify, importJWK, type JWK } from 'jose';
import { z } from 'zod';
import { ascii, concat } from '../bytes.ts';
import { CLOCK_SKEW_S, describeOffset } from '../clock-offset.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { sha256 } from '../sha256.ts';
import { type AttestationPolicy, type FindKeys, verifyAttestation } from './attestation.ts';
import { ATTESTATION_CHARACTERS, ENCAPSULATED_CHARACTERS } from './limits.ts';
import type { SealPrivateKey } from './setup.ts';
import { type unwrap, type Wrapped, wrap } from './wrap.ts';
import { importZoneKey, type ZoneKey, zoneKeyId } from './zone-key.ts';

/** Age of an agent's signed request for the key of its zone; only that agent can open the answer. */
const KEY_REQUEST_S = 60;

// Release of a zone's private keys to an agent (PROTOCOL.md §11): the request, its verification, the answer.
// Pure.

/** `typ` of the signed request. */
export const RELEASE_TYPE = 'auricle-zone-key+jws';

const token = z.string().max(ATTESTATION_CHARACTERS);

/** Body of `POST /v1/release`; beside it the agent's pool token, which says its zone. */
export const releaseRequest = z.strictObject({ attestation: token, proof: z.string().max(2_048) });
export type ReleaseRequest = z.infer<typeof releaseRequest>;

/** Payload that an agent signs with its attested key: the receiver can show what the agent requested. */
const proofPayload = z.strictObject({
  v: z.literal(1),
  zone: z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/),
  /** Seconds since 1970. */
  iat: z.number().int(),
  /** Random; the answer is bound to it. */
  nonce: z.string().min(22).max(64),
  /** SHA-256 of the attestation token, base64url. */
  attestation: z.string(),
});
export type ReleaseProof = z.infer<typeof proofPayload>;

/** Builds that payload. `now` in ms since 1970. */
export function describeRelease(zone: string, attestation: string, now: number): ReleaseProof {
  const nonce = base64url.encode(crypto.getRandomValues(new Uint8Array(16)));
  const digest = base64url.encode(sha256(ascii(attestation)));
  return { v: 1, zone, iat: Math.floor(now / 1_000), nonce, attestation: digest };
}

/** The private keys of a zone, HPKE-sealed to the `enc` key of the attestation. */
export const releaseAnswer = z.strictObject({
  v: z.literal(1),
  enc: z.string().max(ENCAPSULATED_CHARACTERS),
  wrapped: z.string().max(8_192),
});
export type ReleaseAnswer = z.infer<typeof releaseAnswer>;

/** A verified agent that may receive the keys of a zone. */
export interface Release {
  readonly zone: string;
  readonly agent: string;
  readonly sealKey: JsonWebKey;
}

interface ReleaseContext {
  /** Zone of the pool token that the caller has verified. */
  readonly poolZone: string;
  readonly policy: AttestationPolicy;
  /** Epoch ms. */
  readonly now: number;
  readonly findKeys?: FindKeys | undefined;
}

/**
 * Verifies a request for zone keys: an agent whose attestation meets the policy, that signs with the key in
 * it, now, for the zone of its pool token. Refuses with
 * `attestation_invalid` or `zone_unserved`.
 */
export async function decideRelease(
  { attestation, proof }: ReleaseRequest,
  { poolZone, policy, now, findKeys }: ReleaseContext,
): Promise<Result<Release>> {
  const attested = await verifyAttestation(attestation, policy, now, findKeys);
  if (!attested.ok) return attested;
  const { signKey, sealKey, agent } = attested.value;
  const payload = await readProof(proof, signKey);
  if (!payload) return refused('the request is not signed by the attested key');
  if (payload.attestation !== base64url.encode(sha256(ascii(attestation)))) {
    return refused('the request is for another attestation');
  }
  const age = now / 1_000 - payload.iat;
  if (age > KEY_REQUEST_S || age < -CLOCK_SKEW_S) {
    return refused(describeOffset("the agent's", payload.iat * 1_000, now) ?? 'the request is old');
  }
  if (payload.zone !== poolZone) return no(refuse('zone_unserved', { zone: payload.zone }));
  return ok({ zone: payload.zone, agent, sealKey });
}

const refused = (detail: string) => no(refuse('attestation_invalid', undefined, `release: ${detail}`));

async function readProof(proof: string, signKey: JsonWebKey): Promise<ReleaseProof | undefined> {
  try {
    const key = await importJWK(signKey as JWK, 'ES256');
    const { payload, protectedHeader } = await compactVerify(proof, key, { algorithms: ['ES256'] });
    if (protectedHeader.typ !== RELEASE_TYPE) return undefined;
    return proofPayload.safeParse(JSON.parse(new TextDecoder().decode(payload))).data;
  } catch {
    return undefined;
  }
}

/** The answer to a request that was decided: only that agent can open it, and only as the answer to that request. */
export async function answerRelease(
  privateJwks: readonly JsonWebKey[],
  { sealKey }: Release,
  request: ReleaseRequest,
): Promise<ReleaseAnswer> {
  const keys = privateJwks.map(({ kty, crv, x, y, d }) => ({ kty, crv, x, y, d }));
  const box = await wrap(sealKey, ascii(JSON.stringify({ keys })), bindingOf(request));
  return { v: 1, enc: base64url.encode(box.enc), wrapped: base64url.encode(box.wrapped) };
}

function bindingOf({ attestation, proof }: ReleaseRequest) {
  const info = concat(ascii('auricle zone key 1'), sha256(ascii(attestation)));
  return { info, aad: sha256(ascii(proof)) };
}

/** Opens with the private half of the attested `enc` key; `undefined` when that does not fit. */
export type Unwrap = (box: Wrapped, binding: Parameters<typeof unwrap>[2]) => Promise<Uint8Array | undefined>;

const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const released = z.object({
  keys: z
    .array(z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: coordinate, y: coordinate, d: coordinate }))
    .max(8),
});

/**
 * Opens the keys of an answer. HPKE does not authenticate the sender, and a party that could substitute a key
 * could read what the agent seals to it; so only keys that `expected` names are accepted, from settings that
 * are measured or signed elsewhere. Refuses with `seal_broken`.
 */
export async function openRelease(
  answer: ReleaseAnswer,
  request: ReleaseRequest,
  expected: readonly ZoneKey[],
  open: Unwrap,
): Promise<Result<ReadonlyMap<string, SealPrivateKey>>> {
  let plaintext: Uint8Array | undefined;
  let json: unknown;
  try {
    const box = { enc: base64url.decode(answer.enc), wrapped: base64url.decode(answer.wrapped) };
    plaintext = await open(box, bindingOf(request));
    json = plaintext && JSON.parse(new TextDecoder().decode(plaintext));
  } catch {
    plaintext = undefined;
  }
  if (!plaintext) return no(refuse('seal_broken', undefined, 'release: the answer does not open'));
  const parsed = released.safeParse(json);
  if (!parsed.success) return no(refuse('seal_broken', undefined, 'release: the answer holds no keys'));
  return takeZoneKeys(parsed.data.keys, expected);
}

/** Returns released private keys by id, those that `expected` names. Refuses with `seal_broken` without the newest. */
export async function takeZoneKeys(
  jwks: readonly JsonWebKey[],
  expected: readonly ZoneKey[],
): Promise<Result<ReadonlyMap<string, SealPrivateKey>>> {
  const ids = new Set(expected.map(({ kid }) => kid));
  const keys = new Map<string, SealPrivateKey>();
  for (const jwk of jwks) {
    const kid = await zoneKeyId(jwk);
    if (!ids.has(kid)) continue;
    try {
      keys.set(kid, await importZoneKey(jwk));
    } catch {
      return no(refuse('seal_broken', undefined, 'release: a key is not valid'));
    }
  }
  const [newest] = expected;
  if (!newest || !keys.has(newest.kid)) return no(refuse('seal_broken', undefined, 'release: not the key of the zone'));
  return ok(keys);
}
