// Commitments of leaves. A disclosure is a value with its name and a salt, written as in SD-JWT (RFC 9901
// §4.2.1); the leaf has the digest of that text. A disclosure can be checked against it; without one nothing
// is revealed, since a salt has 128 bits. All salts of a leaf derive from one record key, whose destruction
// makes them unknowable.

import { fromBase64Url, toBase64Url } from '../base64.ts';
import { ascii } from '../bytes.ts';
import { sha256 } from '../sha256.ts';

export const RECORD_KEY_BYTES = 32;
const SALT_BYTES = 16;

export { fromBase64Url, toBase64Url };

/** Derives the salt of a field, always the same. */
async function saltOf(recordKey: CryptoKey, field: string): Promise<string> {
  const mac = await crypto.subtle.sign('HMAC', recordKey, new TextEncoder().encode(field));
  return toBase64Url(new Uint8Array(mac).subarray(0, SALT_BYTES));
}

/** Names reserved by SD-JWT (RFC 9901 §4.2.1), not available for hidden fields. */
export const isForbiddenName = (name: string): boolean => name === '_sd' || name === '...';

export interface Disclosure {
  readonly name: string;
  readonly value: unknown;
}

/** Returns the disclosures of all fields of a leaf, by name. */
export async function disclose(
  recordKey: Uint8Array,
  fields: Readonly<Record<string, unknown>>,
): Promise<Record<string, string>> {
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', recordKey as BufferSource, hmac, false, ['sign']);
  const disclosures: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (isForbiddenName(name)) throw new TypeError(`no field can be named ${name}`);
    const text = JSON.stringify([await saltOf(key, name), name, value]);
    disclosures[name] = toBase64Url(new TextEncoder().encode(text));
  }
  return disclosures;
}

/** Commits to the text as written, so that JSON formatting does not matter. */
export const commit = (disclosure: string): string => toBase64Url(sha256(ascii(disclosure)));

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Parses a disclosure without checking it against a leaf; `undefined` for malformed text. */
export function readDisclosure(disclosure: string): Disclosure | undefined {
  const bytes = fromBase64Url(disclosure);
  if (!bytes) return undefined;
  try {
    const parts: unknown = JSON.parse(decoder.decode(bytes));
    if (!Array.isArray(parts) || parts.length !== 3) return undefined;
    const [salt, name, value] = parts as unknown[];
    if (typeof salt !== 'string' || typeof name !== 'string' || isForbiddenName(name)) return undefined;
    return { name, value };
  } catch {
    return undefined;
  }
}

/**
 * Returns a disclosure's content if these commitments contain it. `commitTo`: a faster hash of the platform.
 */
export function checkDisclosure(
  disclosure: string,
  commitments: Readonly<Record<string, string>>,
  commitTo = commit,
): Disclosure | undefined {
  const found = readDisclosure(disclosure);
  if (!found || !Object.hasOwn(commitments, found.name)) return undefined;
  return commitments[found.name] === commitTo(disclosure) ? found : undefined;
}
