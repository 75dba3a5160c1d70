import type { Suite } from './suites.ts';

/**
 * Authenticated encryption under one key. Two methods, so that whoever has a faster implementation than WebCrypto can
 * hand it in: WebCrypto costs 20 to 40 µs a call in Node, the synchronous `node:crypto` about two.
 * Inputs are not changed, and not read again once the call has returned.
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
  const parameters = (nonce: Uint8Array, aad: Uint8Array) => ({
    name: suite.webCrypto,
    iv: nonce as BufferSource,
    additionalData: aad as BufferSource,
    tagLength: suite.Nt * 8,
  });
  return {
    seal: (nonce, aad, plaintext) => crypto.subtle.encrypt(parameters(nonce, aad), key, plaintext as BufferSource),
    async open(nonce, aad, sealed) {
      if (sealed.length < suite.Nt) return undefined;
      try {
        return new Uint8Array(await crypto.subtle.decrypt(parameters(nonce, aad), key, sealed as BufferSource));
      } catch {
        // WebCrypto says "wrong tag" by throwing, and says nothing else about it.
        return undefined;
      }
    },
  };
};
