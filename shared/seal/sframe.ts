import { ascii, bigEndian, concat } from '../bytes.ts';
import { type Aead, type AeadFactory, webCryptoAead } from './aead.ts';
import type { Suite } from './suites.ts';

// SFrame as RFC 9605 defines it, nothing of our own: the header (§4.3), the keys (§4.4.2), the nonce and the
// associated data (§4.4.3). What we add on top, contiguous counters and the flag byte, is in records.ts.

const largest = 2n ** 64n - 1n;

/** Key id and counter as the header of a frame: 1 to 17 bytes, always the shortest form. */
export function encodeHeader(kid: bigint, counter: bigint): Uint8Array {
  if (kid < 0n || kid > largest || counter < 0n || counter > largest)
    throw new RangeError('kid or counter over 64 bits');
  const kidBytes = kid < 8n ? undefined : shortest(kid);
  const counterBytes = counter < 8n ? undefined : shortest(counter);
  const high = kidBytes ? 0x80 | ((kidBytes.length - 1) << 4) : Number(kid) << 4;
  const low = counterBytes ? 0x08 | (counterBytes.length - 1) : Number(counter);
  return concat(Uint8Array.of(high | low), kidBytes ?? new Uint8Array(), counterBytes ?? new Uint8Array());
}

/** Bytes of the header of key id 0, for counters that are exact numbers. */
export function headerLength(counter: number): number {
  if (!Number.isSafeInteger(counter) || counter < 0) throw new RangeError('counter is not an exact number');
  if (counter < 8) return 1;
  let length = 2;
  for (let rest = counter; rest >= 256; rest = Math.floor(rest / 256)) length += 1;
  return length;
}

/** Writes the bytes of `encodeHeader` at `at`, at a tenth of its cost, and returns the offset after them. */
export function writeHeader(into: Uint8Array, at: number, counter: number): number {
  const end = at + headerLength(counter);
  into[at] = end - at === 1 ? counter : 0x08 | (end - at - 2);
  for (let place = end - 1, rest = counter; place > at; place -= 1, rest = Math.floor(rest / 256)) {
    into[place] = rest % 256;
  }
  return end;
}

/** Reports whether the frame at `from` begins with the first `length` bytes of `header`. */
export function startsWith(bytes: Uint8Array, from: number, header: Uint8Array, length: number): boolean {
  if (bytes.length - from < length) return false;
  for (let at = 0; at < length; at += 1) if (bytes[from + at] !== header[at]) return false;
  return true;
}

/** `undefined` when the bytes are too few, or are not the shortest form: one meaning has one spelling here. */
export function decodeHeader(
  bytes: Uint8Array,
): { readonly kid: bigint; readonly counter: bigint; readonly length: number } | undefined {
  const config = bytes[0];
  if (config === undefined) return undefined;
  const kidLength = config & 0x80 ? ((config >> 4) & 7) + 1 : 0;
  const counterLength = config & 0x08 ? (config & 7) + 1 : 0;
  const length = 1 + kidLength + counterLength;
  if (bytes.length < length) return undefined;
  const kid = kidLength ? number(bytes, 1, kidLength) : BigInt((config >> 4) & 7);
  const counter = counterLength ? number(bytes, 1 + kidLength, counterLength) : BigInt(config & 7);
  if (kidLength && (kid < 8n || shortest(kid).length !== kidLength)) return undefined;
  if (counterLength && (counter < 8n || shortest(counter).length !== counterLength)) return undefined;
  return { kid, counter, length };
}

export interface FrameKey {
  readonly kid: bigint;
  readonly salt: Uint8Array;
  readonly aead: Aead;
}

/** AEAD key and salt of a base key, as RFC 9605 §4.4.2 derives them. */
export async function deriveSecrets(
  baseKey: Uint8Array,
  suite: Suite,
  kid: bigint,
): Promise<{ key: Uint8Array; salt: Uint8Array }> {
  const material = await crypto.subtle.importKey('raw', baseKey as BufferSource, 'HKDF', false, ['deriveBits']);
  const expand = async (label: string, length: number) => {
    const info = concat(ascii(label), bigEndian(kid, 8), bigEndian(BigInt(suite.id), 2));
    const parameters = { name: 'HKDF', hash: suite.hash, salt: new Uint8Array(), info: info as BufferSource };
    return new Uint8Array(await crypto.subtle.deriveBits(parameters, material, length * 8));
  };
  const [key, salt] = await Promise.all([
    expand('SFrame 1.0 Secret key ', suite.Nk),
    expand('SFrame 1.0 Secret salt ', suite.Nn),
  ]);
  return { key, salt };
}

export async function frameKey(
  baseKey: Uint8Array,
  suite: Suite,
  kid: bigint,
  factory: AeadFactory = webCryptoAead,
): Promise<FrameKey> {
  const { key, salt } = await deriveSecrets(baseKey, suite, kid);
  return { kid, salt, aead: await factory(suite, key) };
}

export function frameNonce(salt: Uint8Array, counter: bigint): Uint8Array {
  return bigEndian(counter, salt.length).map((byte, at) => byte ^ (salt[at] ?? 0));
}

/** Writes the nonce of a counter that is an exact number. */
export function writeNonce(into: Uint8Array, salt: Uint8Array, counter: number): Uint8Array {
  into.set(salt);
  for (let at = salt.length - 1, rest = counter; rest > 0; at -= 1, rest = Math.floor(rest / 256)) {
    into[at] = (into[at] ?? 0) ^ (rest % 256);
  }
  return into;
}

/** One SFrame ciphertext: header, ciphertext, tag. The caller never uses a counter twice under one key. */
export async function sealFrame(
  key: FrameKey,
  counter: bigint,
  metadata: Uint8Array,
  plaintext: Uint8Array,
): Promise<Uint8Array> {
  const header = encodeHeader(key.kid, counter);
  const sealed = await key.aead.seal(frameNonce(key.salt, counter), concat(header, metadata), plaintext);
  return concat(header, sealed instanceof Uint8Array ? sealed : new Uint8Array(sealed));
}

/** The plaintext of a frame whose header the caller has read and agreed to; `undefined` when it is not authentic. */
export async function openFrame(
  key: FrameKey,
  header: { readonly counter: bigint; readonly length: number },
  metadata: Uint8Array,
  frame: Uint8Array,
): Promise<Uint8Array | undefined> {
  const aad = concat(frame.subarray(0, header.length), metadata);
  return key.aead.open(frameNonce(key.salt, header.counter), aad, frame.subarray(header.length));
}

function shortest(value: bigint): Uint8Array {
  let length = 1;
  while (value >> BigInt(8 * length)) length++;
  return bigEndian(value, length);
}

function number(bytes: Uint8Array, from: number, length: number): bigint {
  let value = 0n;
  for (const byte of bytes.subarray(from, from + length)) value = (value << 8n) | BigInt(byte);
  return value;
}
