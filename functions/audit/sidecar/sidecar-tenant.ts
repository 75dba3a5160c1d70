// The key of a tenant: encrypts the secrets of its subjects and periods, and hashes their names. Without it everything that
// the tenant's leaves hide is lost.
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import { ascii } from '../../../shared/bytes.ts';
import type { LogStore } from '../log/log-store.ts';
import { decrypt, deriveKey, encrypt, KEY_BYTES, type KeyWrap } from './sidecar-box.ts';
import { tenantKeyName } from './sidecar-names.ts';

const TAG_BYTES = 16;

export class TenantKey {
  readonly #sealing: CryptoKey;
  readonly #tagging: CryptoKey;

  private constructor(sealing: CryptoKey, tagging: CryptoKey) {
    this.#sealing = sealing;
    this.#tagging = tagging;
  }

  static async of(secret: Uint8Array): Promise<TenantKey> {
    const whole = await crypto.subtle.importKey('raw', secret as BufferSource, 'HKDF', false, ['deriveKey']);
    const info = ascii('auricle audit tag 1') as BufferSource;
    const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info };
    const hmac = { name: 'HMAC', hash: 'SHA-256', length: 256 };
    const tagging = await crypto.subtle.deriveKey(hkdf, whole, hmac, false, ['sign']);
    return new TenantKey(await deriveKey([secret], 'auricle audit secrets 1'), tagging);
  }

  /** Returns the keyed hash of a subject, stable for the holder of the key and meaningless to others. */
  async tag(subject: string): Promise<string> {
    const mac = await crypto.subtle.sign('HMAC', this.#tagging, new TextEncoder().encode(subject));
    return toBase64Url(new Uint8Array(mac).subarray(0, TAG_BYTES));
  }

  seal(value: unknown, about: string): Promise<Uint8Array> {
    return encrypt(this.#sealing, new TextEncoder().encode(JSON.stringify(value)), about);
  }

  /** Throws when it is not what was sealed about that. */
  async open(box: Uint8Array, about: string): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode(await decrypt(this.#sealing, box, about)));
  }
}

/** `undefined` when there is none and none is to be made. */
export async function findTenantKey(
  { store, zone, wrap }: { readonly store: LogStore; readonly zone: string; readonly wrap: KeyWrap },
  tenant: string | undefined,
  make: boolean,
): Promise<TenantKey | undefined> {
  const name = tenantKeyName(zone, tenant);
  let stored = await store.read('sidecar', name);
  if (!stored && make) {
    const fresh = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    // A concurrent process may create one: the stored one counts.
    await store.create('sidecar', name, await wrap.wrap(fresh, name));
    stored = await store.read('sidecar', name);
    if (!stored) throw new Error('the key of a tenant was deleted in this moment');
  }
  if (!stored) return undefined;
  const { key, old } = await wrap.unwrap(stored.bytes, name);
  // A faster process has written the same key.
  if (old) await store.replace('sidecar', name, await wrap.wrap(key, name), stored.version);
  return TenantKey.of(key);
}
