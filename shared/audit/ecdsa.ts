// ECDSA on P-256 with SHA-256, for signed notes of type 2. Hardware and Azure Key Vault hold such keys, but
// no Ed25519 keys. Encodings are those of other verifiers: public keys in SPKI, signatures in DER.

import { fromBase64 } from '../base64.ts';
import { concat } from '../bytes.ts';
import { sha256 } from '../sha256.ts';
import type { Signer, Verifier } from './note.ts';

const CURVE = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGN = { name: 'ECDSA', hash: 'SHA-256' } as const;
const NUMBER_BYTES = 32;
const KEY_ID_BYTES = 4;
/** SPKI around the 65 bytes of an uncompressed point of P-256 (RFC 5480). */
const SPKI = Uint8Array.of(
  ...[0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1],
  ...[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7, 3, 0x42, 0],
);
const P256_SPKI_BYTES = SPKI.length + 65;

/** A private key in memory, or in a vault that signs and never reveals it. */
export interface P256Key {
  /** SPKI. */
  readonly publicKey: Uint8Array;
  /** Signs SHA-256 of the message. Returns r and s as two numbers of 32 bytes, as WebCrypto and vaults do. */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

export const p256KeyId = (publicKey: Uint8Array): Uint8Array => sha256(publicKey).subarray(0, KEY_ID_BYTES);

export const p256Signer = (key: P256Key, name: string): Signer => ({
  name,
  keyId: p256KeyId(key.publicKey),
  sign: async (text) => toDer(await key.sign(text)),
});

/** Opens a key from settings: PKCS #8 in base64, or a JSON Web Key. Returns `undefined` for other text. */
export async function openP256Key(written: string): Promise<P256Key | undefined> {
  try {
    const [format, data] = written.trimStart().startsWith('{')
      ? (['jwk', JSON.parse(written) as JsonWebKey] as const)
      : (['pkcs8', fromBase64(written.trim())] as const);
    if (data === undefined) return undefined;
    const key = await (format === 'jwk'
      ? crypto.subtle.importKey('jwk', { ...data, key_ops: ['sign'] }, CURVE, true, ['sign'])
      : crypto.subtle.importKey('pkcs8', data, CURVE, true, ['sign']));
    const publicKey = p256Spki((await crypto.subtle.exportKey('jwk', key)) as JsonWebKey);
    return (
      publicKey && {
        publicKey,
        sign: async (message) => new Uint8Array(await crypto.subtle.sign(SIGN, key, message as BufferSource)),
      }
    );
  } catch {
    return undefined;
  }
}

/**
 * Converts the public key of a JSON Web Key to SPKI; `undefined` when its coordinates have the wrong length.
 */
export function p256Spki({ x = '', y = '' }: Pick<JsonWebKey, 'x' | 'y'>): Uint8Array | undefined {
  const [across, up] = [fromBase64Url(x), fromBase64Url(y)];
  if (across?.length !== NUMBER_BYTES || up?.length !== NUMBER_BYTES) return undefined;
  return concat(SPKI, Uint8Array.of(4), across, up);
}

const fromBase64Url = (text: string): Uint8Array | undefined =>
  fromBase64(text.replaceAll('-', '+').replaceAll('_', '/') + '='.repeat((4 - (text.length % 4)) % 4));

/** Opens a P-256 public key; throws on any other. */
export async function openP256Verifier(name: string, publicKey: Uint8Array): Promise<Verifier> {
  const key = await crypto.subtle.importKey('spki', publicKey as BufferSource, CURVE, false, ['verify']);
  return {
    name,
    keyId: p256KeyId(publicKey),
    async verify(text, signature) {
      const numbers = fromDer(signature);
      return numbers !== undefined && crypto.subtle.verify(SIGN, key, numbers, text as BufferSource);
    },
  };
}

/** Reports whether a key has the one accepted encoding. */
export const isP256 = (publicKey: Uint8Array): boolean =>
  publicKey.length === P256_SPKI_BYTES &&
  SPKI.every((byte, at) => publicKey[at] === byte) &&
  publicKey[SPKI.length] === 4;

/** Encodes a DER INTEGER: minimal length, never negative. */
function toInteger(number: Uint8Array): Uint8Array {
  let from = 0;
  while (from < number.length - 1 && number[from] === 0) from += 1;
  const bytes = number.subarray(from);
  const padded = (bytes[0] as number) >= 0x80 ? concat(Uint8Array.of(0), bytes) : bytes;
  return concat(Uint8Array.of(2, padded.length), padded);
}

export function toDer(numbers: Uint8Array): Uint8Array {
  const [r, s] = [toInteger(numbers.subarray(0, NUMBER_BYTES)), toInteger(numbers.subarray(NUMBER_BYTES))];
  return concat(Uint8Array.of(0x30, r.length + s.length), r, s);
}

/** Decodes canonical DER; `undefined` for anything that `toDer` would not write. */
export function fromDer(der: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  const numbers = new Uint8Array(2 * NUMBER_BYTES);
  let at = 2;
  for (const end of [NUMBER_BYTES, 2 * NUMBER_BYTES]) {
    const length = der[at + 1] ?? 0;
    const integer = der.subarray(at + 2, at + 2 + length);
    const digits = integer[0] === 0 ? integer.subarray(1) : integer;
    if (length === 0 || integer.length !== length || digits.length > NUMBER_BYTES) return undefined;
    numbers.set(digits, end - digits.length);
    at += 2 + length;
  }
  const again = toDer(numbers);
  return again.length === der.length && again.every((byte, place) => byte === der[place]) ? numbers : undefined;
}
