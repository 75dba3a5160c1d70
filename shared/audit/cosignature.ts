// Cosignatures of witnesses (C2SP tlog-cosignature, cosignature/v1, type 4): at a time, this checkpoint was
// the newest that the witness had seen, and consistent with all earlier ones.
import { bigEndian, concat } from '../bytes.ts';
import { sha256 } from '../sha256.ts';
import type { Signer, Verifier } from './note.ts';

const COSIGNATURE = 4;
const KEY_ID_BYTES = 4;
const TIME_BYTES = 8;
const SIGNATURE_BYTES = TIME_BYTES + 64;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export const cosignatureKeyId = (name: string, publicKey: Uint8Array): Uint8Array =>
  sha256(encode(`${name}\n`), Uint8Array.of(COSIGNATURE), publicKey).subarray(0, KEY_ID_BYTES);

const messageOf = (time: bigint, text: Uint8Array): Uint8Array =>
  concat(encode(`cosignature/v1\ntime ${time}\n`), text);

/**
 * Signs as a witness with an Ed25519 key. `seconds` since 1970. The caller has verified that the text is a
 * checkpoint.
 */
export function cosigner(
  name: string,
  key: { readonly publicKey: Uint8Array; sign(message: Uint8Array): Promise<Uint8Array> },
  seconds: () => number,
): Signer {
  return {
    name,
    keyId: cosignatureKeyId(name, key.publicKey),
    async sign(text) {
      const time = BigInt(seconds());
      return concat(bigEndian(time, TIME_BYTES), await key.sign(messageOf(time, text)));
    },
  };
}

export async function openCosignatureVerifier(name: string, publicKey: Uint8Array): Promise<Verifier> {
  const key = await crypto.subtle.importKey('raw', publicKey as BufferSource, 'Ed25519', false, ['verify']);
  return {
    name,
    keyId: cosignatureKeyId(name, publicKey),
    async verify(text, signature) {
      const time = timeIn(signature);
      // A cosignature of a checkpoint has a time; zero marks one of a subtree.
      if (time === undefined || time <= 0n || time >= 2n ** 63n) return false;
      const message = messageOf(time, text) as BufferSource;
      return crypto.subtle.verify('Ed25519', key, signature.slice(TIME_BYTES), message);
    },
  };
}

function timeIn(signature: Uint8Array): bigint | undefined {
  if (signature.length !== SIGNATURE_BYTES) return undefined;
  return new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
}

/** Returns the time of a valid cosignature, seconds since 1970. */
export const timeOfCosignature = (signature: Uint8Array): number => Number(timeIn(signature) ?? 0n);
