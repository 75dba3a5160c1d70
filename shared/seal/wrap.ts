import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_P256_HKDF_SHA256 } from 'hpke';
import type { SealPrivateKey } from './setup.ts';

// HPKE (RFC 9180 §6.1), mode Base, one message: wraps a short secret that is stored.

const hpke = new CipherSuite(KEM_DHKEM_P256_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);

export interface Wrapped {
  readonly enc: Uint8Array;
  readonly wrapped: Uint8Array;
}

/** Context that a wrapped key is bound to; unwrapping needs the same. */
export interface Binding {
  readonly info: Uint8Array;
  readonly aad: Uint8Array;
}

/** Wraps a secret. Throws when the key is not a point of the curve: keys come from trusted settings. */
export async function wrap(publicJwk: JsonWebKey, secret: Uint8Array, binding: Binding): Promise<Wrapped> {
  const { kty, crv, x, y } = publicJwk;
  const bare = { kty, crv, x, y } as JsonWebKey;
  const publicKey = await crypto.subtle.importKey('jwk', bare, { name: 'ECDH', namedCurve: 'P-256' }, true, []);
  const { encapsulatedSecret, ciphertext } = await hpke.Seal(publicKey, secret, binding);
  return { enc: encapsulatedSecret, wrapped: ciphertext };
}

/** `undefined` when it was wrapped to another key, bound to something else, or changed. */
export async function unwrap(
  privateKey: SealPrivateKey,
  { enc, wrapped }: Wrapped,
  binding: Binding,
): Promise<Uint8Array | undefined> {
  try {
    return await hpke.Open(privateKey, enc, wrapped, binding);
  } catch {
    return undefined;
  }
}
