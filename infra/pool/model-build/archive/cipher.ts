import { createCipheriv, createDecipheriv, createHmac, hkdfSync, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

/**
 * AES-256-GCM, or SM4 in counter mode with HMAC-SM3 over everything (encrypt, then authenticate): Node's
 * OpenSSL has no SM4-GCM.
 */
export const cipherNames = ['aes-256-gcm', 'sm4-ctr-hmac-sm3'] as const;
export type CipherName = (typeof cipherNames)[number];

/** scrypt's cost: a tenth of a second and 32 MiB for each guess at a passphrase. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 };
const scryptKey = promisify<Uint8Array, Uint8Array, number, typeof COST, Buffer>(scrypt);

const sizes = {
  'aes-256-gcm': { key: 32, nonce: 12, tag: 16 },
  'sm4-ctr-hmac-sm3': { key: 16, nonce: 16, tag: 32 },
} as const;

export const tagBytes = (name: CipherName): number => sizes[name].tag;

/** Key material of one archive. */
export interface Secret {
  readonly cipher: CipherName;
  readonly master: Uint8Array;
  /** Part of the archive that distinguishes a wrong key from damage. Reveals nothing else about the key. */
  readonly check: string;
}

const derive = (master: Uint8Array, use: string, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', master, new Uint8Array(0), use, length));

/**
 * Derives the key material. `salt` is the digest of the archive's head: one passphrase gives each archive
 * another key.
 */
export async function makeSecret(cipher: CipherName, key: Uint8Array, salt: Uint8Array): Promise<Secret> {
  const master = await scryptKey(key, salt, 32, COST);
  return { cipher, master, check: derive(master, 'check', 16).toString('hex') };
}

/**
 * Derives the nonce from key, name and content, since repeated builds must give equal bytes. Two archives
 * with equal head and key reveal which artifacts are equal, and nothing else: a nonce never meets two
 * plaintexts under one key.
 */
export function makeNonce({ cipher, master }: Secret, name: string, plainDigest: Uint8Array): Uint8Array {
  const key = derive(master, 'nonce', 32);
  return createHmac('sha256', key)
    .update(name)
    .update('\0')
    .update(plainDigest)
    .digest()
    .subarray(0, sizes[cipher].nonce);
}

export interface Transform {
  update(chunk: Uint8Array): Uint8Array;
  /** Sealing: returns the tag. Opening: returns empty bytes, or undefined when the tag does not match. */
  finish(tag: Uint8Array): Uint8Array | undefined;
}

export function sealing({ cipher, master }: Secret, name: string, nonce: Uint8Array, bound: Uint8Array): Transform {
  const key = derive(master, `key ${name}`, sizes[cipher].key);
  if (cipher === 'aes-256-gcm') {
    const gcm = createCipheriv('aes-256-gcm', key, nonce).setAAD(bound);
    return {
      update: (chunk) => gcm.update(chunk),
      finish: () => {
        gcm.final();
        return gcm.getAuthTag();
      },
    };
  }
  const counter = createCipheriv('sm4-ctr', key, nonce);
  const mac = startMac(master, name, nonce, bound);
  return {
    update(chunk) {
      const sealed = counter.update(chunk);
      mac.update(sealed);
      return sealed;
    },
    finish: () => mac.digest(),
  };
}

export function opening({ cipher, master }: Secret, name: string, nonce: Uint8Array, bound: Uint8Array): Transform {
  const key = derive(master, `key ${name}`, sizes[cipher].key);
  if (cipher === 'aes-256-gcm') {
    const gcm = createDecipheriv('aes-256-gcm', key, nonce).setAAD(bound);
    return {
      update: (chunk) => gcm.update(chunk),
      finish(tag) {
        try {
          gcm.setAuthTag(tag);
          return gcm.final();
        } catch {
          // Node reports a wrong tag by throwing.
          return undefined;
        }
      },
    };
  }
  const counter = createDecipheriv('sm4-ctr', key, nonce);
  const mac = startMac(master, name, nonce, bound);
  return {
    update(chunk) {
      mac.update(chunk);
      return counter.update(chunk);
    },
    finish: (tag) => (timingSafeEqual(mac.digest(), tag) ? new Uint8Array(0) : undefined),
  };
}

/** Starts the MAC. Bound data is prefixed with its length, so that it cannot move into the content. */
function startMac(master: Uint8Array, name: string, nonce: Uint8Array, bound: Uint8Array) {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(bound.length));
  return createHmac('sm3', derive(master, `mac ${name}`, 32))
    .update(length)
    .update(bound)
    .update(nonce);
}
