/** A cipher suite of RFC 9605 §4.5. Lengths are in bytes. */
export interface Suite {
  /** Code point of the SFrame registry, or of its private-use range from 0xF000. */
  readonly id: number;
  readonly name: string;
  /** Hash of the key derivation, in WebCrypto's spelling. */
  readonly hash: 'SHA-256' | 'SHA-512';
  /** Output of the hash, and so the length of a base key. */
  readonly Nh: number;
  /** AEAD key, nonce and tag. */
  readonly Nk: number;
  readonly Nn: number;
  readonly Nt: number;
  /** WebCrypto's name of the AEAD; OpenSSL's is `openssl`, for agents that call it synchronously. */
  readonly webCrypto: 'AES-GCM';
  readonly openssl: string;
}

/** The suites this build seals and opens. A suite that is not here is never negotiated; there is no fallback. */
export const suites = {
  5: {
    id: 0x0005,
    name: 'AES_256_GCM_SHA512_128',
    hash: 'SHA-512',
    Nh: 64,
    Nk: 32,
    Nn: 12,
    Nt: 16,
    webCrypto: 'AES-GCM',
    openssl: 'aes-256-gcm',
  },
} as const satisfies Record<number, Suite>;

export type SuiteId = keyof typeof suites;

export const isSuite = (id: number): id is SuiteId => Object.hasOwn(suites, id);
