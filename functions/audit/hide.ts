// What leaves hide, kept apart from them and encrypted: under a key of its tenant, which is itself encrypted under a key
// that only the functions are told. Whoever deletes a tenant's key has erased what all its leaves hide, and every proof
// still holds.
import { fromBase64, toBase64 } from '../../shared/audit/base64.ts';
import { concat } from '../../shared/seal/bytes.ts';
import type { Hide } from './intake.ts';
import type { LogStore } from './log-store.ts';

const KEY_BYTES = 32;
const IV_BYTES = 12;
/** Tenants whose keys are held in memory; beyond it the oldest is asked for again. */
const KEYS_MAX = 1_024;
/** Who has no tenant. */
const NOBODY = '@nobody';

const keyName = (zone: string, tenant: string): string => `${zone}/keys/${tenant}`;

/** Hides for one zone. `wrapping` is 32 bytes in base64. */
export function openHide(store: LogStore, zone: string, wrapping: string): Hide {
  const keys = new Map<string, Promise<CryptoKey>>();
  const keyOf = (tenant: string): Promise<CryptoKey> => {
    const known = keys.get(tenant);
    if (known) return known;
    const [oldest] = keys.keys();
    if (keys.size >= KEYS_MAX && oldest !== undefined) keys.delete(oldest);
    const asked = findKey(store, keyName(zone, tenant), wrapping);
    keys.set(tenant, asked);
    // What failed is tried again, not remembered.
    asked.catch(() => keys.delete(tenant));
    return asked;
  };
  return async (tenant = NOBODY, disclosures) => {
    const text = new TextEncoder().encode(JSON.stringify(disclosures));
    return toBase64(await encrypt(await keyOf(tenant), text, keyName(zone, tenant)));
  };
}

async function findKey(store: LogStore, name: string, wrapping: string): Promise<CryptoKey> {
  const secret = fromBase64(wrapping);
  if (secret?.length !== KEY_BYTES) throw new Error('the key of the sidecar is not 32 bytes in base64');
  const outer = await importKey(secret);
  const fresh = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  // Somebody else may make one at the same moment: the one that is there counts.
  await store.create('sidecar', name, await encrypt(outer, fresh, name));
  const kept = await store.read('sidecar', name);
  if (!kept) throw new Error('the key of a tenant was deleted in this moment');
  return importKey(await decrypt(outer, kept.bytes, name));
}

const importKey = (bytes: Uint8Array): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', bytes as BufferSource, 'AES-GCM', false, ['encrypt', 'decrypt']);

/** `about` is bound to what is encrypted, so that nothing passes for something else. */
async function encrypt(key: CryptoKey, bytes: Uint8Array, about: string): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const additionalData = new TextEncoder().encode(about);
  const box = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData }, key, bytes as BufferSource);
  return concat(iv, new Uint8Array(box));
}

async function decrypt(key: CryptoKey, box: Uint8Array, about: string): Promise<Uint8Array> {
  const iv = box.slice(0, IV_BYTES);
  const additionalData = new TextEncoder().encode(about);
  const opened = crypto.subtle.decrypt({ name: 'AES-GCM', iv, additionalData }, key, box.slice(IV_BYTES));
  return new Uint8Array(await opened);
}

/** What a leaf hides, by name: disclosures. For whoever may see it. */
export async function openHidden(
  store: LogStore,
  zone: string,
  wrapping: string,
  tenant: string | undefined,
  hidden: string,
): Promise<Record<string, string> | undefined> {
  const name = keyName(zone, tenant ?? NOBODY);
  const [kept, box, secret] = [await store.read('sidecar', name), fromBase64(hidden), fromBase64(wrapping)];
  if (!kept || !box || !secret) return undefined;
  const key = await importKey(await decrypt(await importKey(secret), kept.bytes, name));
  return JSON.parse(new TextDecoder().decode(await decrypt(key, box, name)));
}
