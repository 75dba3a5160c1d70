import type { Suite } from './suites.ts';

/**
 * Authenticated encryption under one key. An interface, so that a runtime can pass a faster implementation
 * than WebCrypto, which costs 20 to 40 µs a call in Node; synchronous `node:crypto` costs about two. Inputs
 * are not changed, and not read again once the call has returned.
 */
export interface Aead {
  /** Ciphertext followed by the full tag. */
  seal(nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Uint8Array | Promise<Uint8Array | ArrayBuffer>;
  /** The plaintext, or `undefined` when the tag does not match or is not whole. Never throws for bad input. */
  open(
    nonce: Uint8Array,
    aad: Uint8Array,
    sealed: Uint8Array,
  ): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

export type AeadFactory = (suite: Suite, key: Uint8Array) => Aead | Promise<Aead>;

/** The implementation that every runtime has: Workers, browsers, Node. */
export const webCryptoAead: AeadFactory = async (suite, raw) => {
  const usages = ['encrypt', 'decrypt'] as const;
  const key = await crypto.subtle.importKey('raw', raw as BufferSource, suite.webCrypto, false, usages);
  // `tagLength` is passed only where it differs from WebCrypto's default: each member that the runtime reads
  // costs time.
  const tag = suite.Nt === WEB_CRYPTO_TAG ? undefined : { tagLength: suite.Nt * 8 };
  const parameters = (nonce: Uint8Array, aad: Uint8Array) => {
    const given = { name: suite.webCrypto, iv: nonce as BufferSource, additionalData: aad as BufferSource };
    return tag ? { ...given, ...tag } : given;
  };
  return {
    seal: (nonce, aad, plaintext) => crypto.subtle.encrypt(parameters(nonce, aad), key, plaintext as BufferSource),
    open(nonce, aad, sealed) {
      if (sealed.length < suite.Nt) return undefined;
      return crypto.subtle.decrypt(parameters(nonce, aad), key, sealed as BufferSource).then(view, notAuthentic);
    },
  };
};

/** Bytes (W3C WebCrypto §27.3: 128 bits). */
const WEB_CRYPTO_TAG = 16;

const view = (bytes: ArrayBuffer) => new Uint8Array(bytes);
/** WebCrypto says "wrong tag" by throwing, and says nothing else about it. */
const notAuthentic = () => undefined;
