// What a leaf says about a value without saying the value. A disclosure is the value with its name and a salt, written as
// SD-JWT does it (RFC 9901 §4.2.1); the leaf holds the digest of that text. Whoever is shown the disclosure can check it;
// without it nothing can be learnt, not even by trying all values, since a salt has 128 bits. All salts of a leaf are made of
// one record key, so that destroying it destroys them all.
import { ascii } from '../seal/bytes.ts';
import { fromBase64Url, toBase64Url } from './base64.ts';
import { sha256 } from './sha256.ts';

export const RECORD_KEY_BYTES = 32;
const SALT_BYTES = 16;

export { fromBase64Url, toBase64Url };

/** The salt of a field: the same whenever it is asked for. */
async function saltOf(recordKey: CryptoKey, field: string): Promise<string> {
  const mac = await crypto.subtle.sign('HMAC', recordKey, new TextEncoder().encode(field));
  return toBase64Url(new Uint8Array(mac).subarray(0, SALT_BYTES));
}

/** Names that mean something else where SD-JWT is read (RFC 9901 §4.2.1): nobody may hide a field under one. */
export const isForbiddenName = (name: string): boolean => name === '_sd' || name === '...';

export interface Disclosure {
  readonly name: string;
  readonly value: unknown;
}

/** Disclosures of all fields of a leaf, by name. */
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

/** Over the text as it is written, so that nobody has to agree on how JSON is written. */
export const commit = (disclosure: string): string => toBase64Url(sha256(ascii(disclosure)));

const decoder = new TextDecoder('utf-8', { fatal: true });

/** What a disclosure says, whether or not a leaf says so; `undefined` when it is none. */
export function readDisclosure(disclosure: string): Disclosure | undefined {
  const bytes = fromBase64Url(disclosure);
  if (!bytes) return undefined;
  try {
    const said: unknown = JSON.parse(decoder.decode(bytes));
    if (!Array.isArray(said) || said.length !== 3) return undefined;
    const [salt, name, value] = said as unknown[];
    if (typeof salt !== 'string' || typeof name !== 'string' || isForbiddenName(name)) return undefined;
    return { name, value };
  } catch {
    return undefined;
  }
}

/** What a disclosure says, if a leaf with these commitments says so, too. `commitTo`: where the platform has a faster one. */
export function checkDisclosure(
  disclosure: string,
  commitments: Readonly<Record<string, string>>,
  commitTo = commit,
): Disclosure | undefined {
  const said = readDisclosure(disclosure);
  if (!said || !Object.hasOwn(commitments, said.name)) return undefined;
  return commitments[said.name] === commitTo(disclosure) ? said : undefined;
}
