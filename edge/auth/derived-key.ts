import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { Settings } from '../settings.ts';

const keys = new WeakMap<Settings, Map<string, KeyObject>>();

/**
 * Derives a secret key for one purpose (HKDF-SHA-256, `purpose` as the info) from the key that signs tickets: every
 * isolate derives the same one. What was made with it becomes invalid with a new ticket key.
 */
export function derivedKey(settings: Settings, purpose: string): KeyObject {
  const derived = keys.get(settings) ?? new Map<string, KeyObject>();
  keys.set(settings, derived);
  let key = derived.get(purpose);
  if (!key) {
    const secret = Buffer.from(settings.ticketKey.d ?? '', 'base64url');
    key = createSecretKey(Buffer.from(hkdfSync('sha256', secret, 'auricle', purpose, 32)));
    derived.set(purpose, key);
  }
  return key;
}
