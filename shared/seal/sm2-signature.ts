// Signatures of SM2 (GB/T 32918.2-2016) over SM3. What is signed is not the message alone: Z goes before it, a digest of the
// signer's id, the curve and the public key. A signature without Z, or with another id, is another signature.
import { ascii, bigEndian, concat } from '../bytes.ts';
import { combine, curve, invert, isOnCurve, modulo, type Point } from './sm2-curve.ts';
import { sm3 } from './sm3.ts';

/** The id of signers that have none (GM/T 0009-2012). */
const SM2_DEFAULT_ID = '1234567812345678';

const BYTES = 32;
const { A, B, G, N } = curve;

/** r and s, 32 bytes each. */
export type Sm2Signature = Uint8Array;

export function sm2Z(publicKey: Point, id: string = SM2_DEFAULT_ID): Uint8Array {
  const name = ascii(id);
  const numbers = [A, B, G.x, G.y, publicKey.x, publicKey.y].map((number) => bigEndian(number, BYTES));
  return sm3(bigEndian(BigInt(8 * name.length), 2), name, ...numbers);
}

const toNumber = (bytes: Uint8Array): bigint => bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);

const digestOf = (message: Uint8Array, publicKey: Point, id: string): bigint =>
  toNumber(sm3(sm2Z(publicKey, id), message));

/** `undefined` when it is no point of the curve: 65 bytes, uncompressed. */
export function readSm2Point(bytes: Uint8Array): Point | undefined {
  if (bytes.length !== 1 + 2 * BYTES || bytes[0] !== 4) return undefined;
  const point = { x: toNumber(bytes.subarray(1, 1 + BYTES)), y: toNumber(bytes.subarray(1 + BYTES)) };
  return isOnCurve(point) ? point : undefined;
}

export const writeSm2Point = ({ x, y }: Point): Uint8Array<ArrayBuffer> =>
  concat(Uint8Array.of(4), bigEndian(x, BYTES), bigEndian(y, BYTES));

/** Throws for a number that is no private key: one from 1 to n − 2. */
export function sm2PublicKey(privateKey: Uint8Array): Point {
  const times = toNumber(privateKey);
  if (privateKey.length !== BYTES || times < 1n || times > N - 2n) throw new RangeError('not a private key of SM2');
  return combine({ times, point: G }) as Point;
}

/**
 * Signs. `random` fills 32 unpredictable bytes, new ones for each call: two signatures with the same bytes
 * reveal the key.
 */
export function signSm2(
  message: Uint8Array,
  privateKey: Uint8Array,
  random: () => Uint8Array,
  id: string = SM2_DEFAULT_ID,
): Sm2Signature {
  const publicKey = sm2PublicKey(privateKey);
  const d = toNumber(privateKey);
  const e = digestOf(message, publicKey, id);
  for (;;) {
    const k = toNumber(random());
    if (k < 1n || k >= N) continue;
    const r = modulo(e + (combine({ times: k, point: G }) as Point).x, N);
    if (r === 0n || r + k === N) continue;
    const s = modulo(invert(1n + d, N) * (k - r * d), N);
    if (s !== 0n) return concat(bigEndian(r, BYTES), bigEndian(s, BYTES));
  }
}

export function verifySm2(
  message: Uint8Array,
  signature: Sm2Signature,
  publicKey: Point,
  id: string = SM2_DEFAULT_ID,
): boolean {
  if (signature.length !== 2 * BYTES || !isOnCurve(publicKey)) return false;
  const [r, s] = [toNumber(signature.subarray(0, BYTES)), toNumber(signature.subarray(BYTES))];
  if (r < 1n || r >= N || s < 1n || s >= N) return false;
  const t = modulo(r + s, N);
  if (t === 0n) return false;
  const point = combine({ times: s, point: G }, { times: t, point: publicKey });
  return point !== undefined && modulo(digestOf(message, publicKey, id) + point.x, N) === r;
}
