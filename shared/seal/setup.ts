import {
  AEAD_AES_256_GCM,
  CipherSuite,
  KDF_HKDF_SHA256,
  KEM_DHKEM_P256_HKDF_SHA256,
  type RecipientContext,
  type SenderContext,
} from 'hpke';
import { ascii, bigEndian, concat } from '../bytes.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { sha256 } from '../sha256.ts';
import { type SuiteId, suites } from './suites.ts';

const profile = 'auricle seal 1';

// Base mode, export only: the AEAD of the HPKE suite never encrypts anything, SFrame does.
const hpke = new CipherSuite(KEM_DHKEM_P256_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);

/** SFrame base keys of one request, one per direction: a key that served both could be made to answer itself. */
export interface RequestKeys {
  readonly request: Uint8Array;
  readonly answer: Uint8Array;
}

/** One HPKE set-up between a sealer and an agent; good for many requests, each with keys of its own. */
export interface SealSetup {
  /** HPKE encapsulated key; sent once per request, not secret. */
  readonly enc: Uint8Array;
  readonly suite: SuiteId;
  /** Keys bound to this set-up and to every byte of the ticket (a compact JWS). Equal tickets give equal keys. */
  keysFor(ticket: string): Promise<RequestKeys>;
  /** Derives the keys of a sealed session from its ticket; never equal to those of `keysFor`. */
  laneKeysFor(ticket: string): Promise<RequestKeys>;
}

/** The pair, because runtimes without `getPublicKey` cannot find the public half of a key that must not be exported. */
export type SealPrivateKey = CryptoKeyPair;

/** A fresh P-256 pair that cannot leave the process. The public half goes into the attestation with `use: "enc"`. */
export async function generateSealKey(): Promise<{ publicJwk: JsonWebKey; privateKey: SealPrivateKey }> {
  const privateKey = (await hpke.GenerateKeyPair(false)) as CryptoKeyPair;
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', privateKey.publicKey);
  return { publicJwk: { kty, crv, x, y, use: 'enc' } as JsonWebKey, privateKey };
}

/**
 * Edge or client side. `publicJwk` comes from an attestation that was verified, so a key that is no point of the curve
 * is a bug here and throws.
 */
export async function setupSender(publicJwk: JsonWebKey, suite: SuiteId, attestation: string): Promise<SealSetup> {
  const { kty, crv, x, y } = publicJwk;
  const bare = { kty, crv, x, y } as JsonWebKey;
  const publicKey = await crypto.subtle.importKey('jwk', bare, { name: 'ECDH', namedCurve: 'P-256' }, true, []);
  const { encapsulatedSecret, ctx } = await hpke.SetupSender(publicKey, { info: setupInfo(suite, attestation) });
  return { enc: encapsulatedSecret, suite, ...keysOf(ctx, suite) };
}

/** Agent side. `seal_broken` when `enc` is no point of the curve; everything else shows at the first record. */
export async function setupRecipient(
  privateKey: SealPrivateKey,
  enc: Uint8Array,
  suite: SuiteId,
  attestation: string,
): Promise<Result<SealSetup>> {
  const info = setupInfo(suite, attestation);
  try {
    const ctx = await hpke.SetupRecipient(privateKey, enc, { info });
    return ok({ enc, suite, ...keysOf(ctx, suite) });
  } catch {
    // The library's message is about its inputs; what matters is only that no secret can be agreed.
    return no(refuse('seal_broken', undefined, 'set-up: the encapsulated key is not valid'));
  }
}

function setupInfo(suite: SuiteId, attestation: string): Uint8Array {
  return concat(ascii(profile), bigEndian(BigInt(suite), 2), sha256(ascii(attestation)));
}

function keysOf(ctx: SenderContext | RecipientContext, suite: SuiteId): Pick<SealSetup, 'keysFor' | 'laneKeysFor'> {
  const derive = (purpose: string) => async (ticket: string) => {
    const digest = sha256(ascii(ticket));
    const key = (direction: keyof RequestKeys) =>
      ctx.Export(concat(ascii(`${purpose} ${direction}`), digest), suites[suite].Nh);
    const [request, answer] = await Promise.all([key('request'), key('answer')]);
    return { request, answer };
  };
  return { keysFor: derive(profile), laneKeysFor: derive(`${profile} lane`) };
}
