// Boxes of what must not be read: AES-256-GCM, bound to what they are about.
import { fromBase64 } from '../../../shared/base64.ts';
import { ascii, concat } from '../../../shared/bytes.ts';

export const KEY_BYTES = 32;
const IV_BYTES = 12;

/** Encrypts the keys of tenants. */
export interface KeyWrap {
  wrap(key: Uint8Array, about: string): Promise<Uint8Array>;
  /** Throws when it is not the box of that. `old`: it should be wrapped again. */
  unwrap(box: Uint8Array, about: string): Promise<{ readonly key: Uint8Array; readonly old: boolean }>;
}

/** `secrets`: each is 32 bytes in base64, with commas between them. The first wraps, all unwrap. */
export function wrapWith(secrets: string): KeyWrap {
  const keys = secrets.split(',').map((secret) => {
    const bytes = fromBase64(secret);
    if (bytes?.length !== KEY_BYTES) throw new Error('the key of the sidecar is not 32 bytes in base64');
    return importKey(bytes);
  });
  return {
    wrap: async (key, about) => encrypt(await (keys[0] as Promise<CryptoKey>), key, about),
    async unwrap(box, about) {
      const opened = await Promise.allSettled(keys.map(async (outer) => decrypt(await outer, box, about)));
      const at = opened.findIndex(({ status }) => status === 'fulfilled');
      const found = opened[Math.max(0, at)] as PromiseSettledResult<Uint8Array>;
      if (found.status === 'rejected') throw found.reason;
      return { key: found.value, old: at > 0 };
    },
  };
}

export const importKey = (bytes: Uint8Array): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', bytes as BufferSource, 'AES-GCM', false, ['encrypt', 'decrypt']);

/** Derives a key that needs all of several secrets. */
export async function deriveKey(secrets: readonly Uint8Array[], about: string): Promise<CryptoKey> {
  const whole = await crypto.subtle.importKey('raw', concat(...secrets), 'HKDF', false, ['deriveKey']);
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: ascii(about) as BufferSource };
  return crypto.subtle.deriveKey(hkdf, whole, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
}

/** `about` is bound to what is encrypted, so that nothing passes for something else. */
export async function encrypt(key: CryptoKey, bytes: Uint8Array, about: string): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const additionalData = new TextEncoder().encode(about);
  const box = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData }, key, bytes as BufferSource);
  return concat(iv, new Uint8Array(box));
}

/** Throws when it is not the box of that. */
export async function decrypt(key: CryptoKey, box: Uint8Array, about: string): Promise<Uint8Array> {
  const iv = box.slice(0, IV_BYTES);
  const additionalData = new TextEncoder().encode(about);
  const opened = crypto.subtle.decrypt({ name: 'AES-GCM', iv, additionalData }, key, box.slice(IV_BYTES));
  return new Uint8Array(await opened);
}
