import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_P256_HKDF_SHA256 } from 'hpke';
import type { SealPrivateKey } from './setup.ts';

// HPKE (RFC 9180 §6.1), mode Base, one message: for what is as short as a key and waits in a store, where a set-up
// between two who talk (setup.ts) has nobody to talk to.

const hpke = new CipherSuite(KEM_DHKEM_P256_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);

export interface Wrapped {
  readonly enc: Uint8Array;
  readonly wrapped: Uint8Array;
}

/** What the wrapping is bound to; whoever unwraps must say the same. */
export interface Binding {
  readonly info: Uint8Array;
  readonly aad: Uint8Array;
}

/** Throws when the key is no point of the curve: it comes from whoever we believe. */
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
