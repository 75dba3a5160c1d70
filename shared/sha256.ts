// Synchronous SHA-256, for the public data of logs and manifests. WebCrypto resolves a promise for each digest, which costs
// several times the digest of a 65-byte tree node.
import { sha256 as hash } from '@noble/hashes/sha2.js';

/** An incremental digest. */
export interface Sha256 {
  update(bytes: Uint8Array): unknown;
  digest(): Uint8Array;
}

export const openSha256 = (): Sha256 => hash.create();

/** Returns the digest of the concatenated parts. */
export function sha256(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const digest = hash.create();
  for (const part of parts) digest.update(part);
  return digest.digest();
}
