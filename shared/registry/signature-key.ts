// Trusted signers of models, and the two signature algorithms.
import { z } from 'zod';
import { fromDer, isP256, openP256Verifier, toDer } from '../audit/ecdsa.ts';
import { fromBase64, toBase64 } from '../base64.ts';
import { ascii, concat } from '../bytes.ts';
import { toHex } from '../hex.ts';
import type { Point } from '../seal/sm2-curve.ts';
import { readSm2Point, signSm2, sm2PublicKey, verifySm2, writeSm2Point } from '../seal/sm2-signature.ts';
import { sha256 } from '../sha256.ts';

/** Digest that pairs with the algorithm, of the same family, so that a verifier needs one family only. */
export const digestOf = { 'ecdsa-p256': 'sha256', sm2: 'sm3' } as const;
export type Algorithm = keyof typeof digestOf;
export type HashName = (typeof digestOf)[Algorithm];

/** SPKI around a point of the curve of SM2 (GM/T 0010). */
const SM2_SPKI = Uint8Array.of(
  ...[0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1],
  ...[6, 8, 0x2a, 0x81, 0x1c, 0xcf, 0x55, 1, 0x82, 0x2d, 3, 0x42, 0],
);

/** A trusted signer in the settings. Two keys with one name are one person. */
export const signerKey = z.object({
  name: z.string().regex(/^[a-z0-9][a-z0-9@._-]{0,62}$/),
  /** SPKI in base64: the body of a PEM file. */
  key: z
    .base64()
    .max(256)
    .refine((text) => algorithmOf(fromBase64(text)) !== undefined, 'is no key of P-256 or SM2'),
  /** A machine that makes the revisions of rollouts. Its signature opens no gate. */
  worker: z.literal(true).optional(),
});
export type SignerKey = z.infer<typeof signerKey>;

/** Returns the algorithm of a public key; `undefined` when it is neither. */
export function algorithmOf(spki: Uint8Array | undefined): Algorithm | undefined {
  if (!spki) return undefined;
  if (isP256(spki)) return 'ecdsa-p256';
  return sm2PointOf(spki) ? 'sm2' : undefined;
}

const sm2PointOf = (spki: Uint8Array): Point | undefined =>
  SM2_SPKI.every((byte, at) => spki[at] === byte) ? readSm2Point(spki.subarray(SM2_SPKI.length)) : undefined;

/** Key hint of bundles: SHA-256 of the PEM file, in hex. */
export function hintOf(spki: Uint8Array): string {
  const lines = toBase64(spki).match(/.{1,64}/g) ?? [];
  const pem = `-----BEGIN PUBLIC KEY-----\n${lines.join('\n')}\n-----END PUBLIC KEY-----\n`;
  return toHex(sha256(ascii(pem)));
}

/** Verifies `signature`, in DER. */
export async function verifyBy(spki: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  if (algorithmOf(spki) === 'ecdsa-p256') {
    try {
      return await (await openP256Verifier('', spki)).verify(message, signature);
    } catch {
      // No point of the curve.
      return false;
    }
  }
  const [point, numbers] = [sm2PointOf(spki), fromDer(signature)];
  return point !== undefined && numbers !== undefined && verifySm2(message, numbers, point);
}

/** A private key, local or remote. */
export interface SigningKey {
  /** SPKI of its public half. */
  readonly publicKey: Uint8Array;
  /** Returns the signature in DER. */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

/** A key of SM2: 32 bytes. */
export function openSm2Key(privateKey: Uint8Array): SigningKey {
  const publicKey = concat(SM2_SPKI, writeSm2Point(sm2PublicKey(privateKey)));
  const random = () => crypto.getRandomValues(new Uint8Array(32));
  return { publicKey, sign: async (message) => toDer(signSm2(message, privateKey, random)) };
}
