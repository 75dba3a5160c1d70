// Signed notes (C2SP signed-note): a text, an empty line, signatures. Ed25519 keys (type 1) are here, other
// types in note-key.ts; signatures of unknown keys are preserved and count for nothing.

import { fromBase64, toBase64 } from '../base64.ts';
import { ascii, concat } from '../bytes.ts';
import { toHex } from '../hex.ts';
import { sha256 } from '../sha256.ts';

/** Signature lines of a note; a longer note is refused, since each line costs a verification. */
const NOTE_SIGNATURES_MAX = 100;

const ED25519 = 1;
const KEY_ID_BYTES = 4;
/** DER around the 32 bytes of an Ed25519 private key (RFC 8410). */
const PKCS8 = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20);

export interface Signer {
  readonly name: string;
  readonly keyId: Uint8Array;
  sign(text: Uint8Array): Promise<Uint8Array>;
}

export interface Verifier {
  readonly name: string;
  readonly keyId: Uint8Array;
  verify(text: Uint8Array, signature: Uint8Array): Promise<boolean>;
}

/** A signature line of a note. */
export interface NoteSignature {
  readonly name: string;
  readonly keyId: Uint8Array;
  readonly signature: Uint8Array;
}

export interface OpenedNote {
  readonly text: string;
  /** Names of the keys with valid signatures. */
  readonly signers: readonly string[];
  /** Valid signatures, one for each key. */
  readonly good: readonly NoteSignature[];
}

/** Name of a log or a witness. */
export const isName = (name: string): boolean => name !== '' && !/[\s+\p{C}]/u.test(name);

export function keyIdOf(name: string, publicKey: Uint8Array): Uint8Array {
  return sha256(ascii(`${name}\n`), Uint8Array.of(ED25519), publicKey).subarray(0, KEY_ID_BYTES);
}

export async function openVerifier(name: string, publicKey: Uint8Array): Promise<Verifier> {
  const key = await crypto.subtle.importKey('raw', publicKey as BufferSource, 'Ed25519', false, ['verify']);
  return {
    name,
    keyId: keyIdOf(name, publicKey),
    verify: (text, signature) => crypto.subtle.verify('Ed25519', key, signature as BufferSource, text as BufferSource),
  };
}

/** Opens a 32-byte private key; returns its signer and public key. */
export async function openSigningKey(
  seed: Uint8Array,
): Promise<{ publicKey: Uint8Array; signer(name: string): Signer }> {
  const readable = await crypto.subtle.importKey('pkcs8', concat(PKCS8, seed), 'Ed25519', true, ['sign']);
  const { x = '' } = await crypto.subtle.exportKey('jwk', readable);
  const publicKey = fromBase64(`${x.replaceAll('-', '+').replaceAll('_', '/')}=`);
  if (!publicKey) throw new Error('an Ed25519 key without its public half');
  const key = await crypto.subtle.importKey('pkcs8', concat(PKCS8, seed), 'Ed25519', false, ['sign']);
  const sign = async (text: Uint8Array) =>
    new Uint8Array(await crypto.subtle.sign('Ed25519', key, text as BufferSource));
  return { publicKey, signer: (name) => ({ name, keyId: keyIdOf(name, publicKey), sign }) };
}

/** Formats a signature as a line of a note. */
export const formatSignature = ({ name, keyId, signature }: NoteSignature): string =>
  `— ${name} ${toBase64(concat(keyId, signature))}\n`;

/** Signs a text, which must end with a line break. */
export async function signNote(text: string, signers: readonly Signer[]): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  const lines = await Promise.all(
    signers.map(async ({ name, keyId, sign }) => formatSignature({ name, keyId, signature: await sign(bytes) })),
  );
  return `${text}\n${lines.join('')}`;
}

/** Reports whether a signature names that key. */
export const isOfKey = (signature: Pick<NoteSignature, 'name' | 'keyId'>, key: Pick<Verifier, 'name' | 'keyId'>) =>
  signature.name === key.name && toHex(signature.keyId) === toHex(key.keyId);

/**
 * Returns the text of a note that at least one of `verifiers` signed; `undefined` without one, with a wrong
 * signature of one of them, or for malformed notes.
 */
export async function openNote(note: Uint8Array, verifiers: readonly Verifier[]): Promise<OpenedNote | undefined> {
  const parts = splitNote(note);
  if (!parts) return undefined;
  const bytes = new TextEncoder().encode(parts.text);
  const good: NoteSignature[] = [];
  for (const signature of parts.signatures) {
    const known = verifiers.find((one) => isOfKey(signature, one));
    // A key counts once.
    if (!known || good.some((one) => isOfKey(one, known))) continue;
    if (!(await known.verify(bytes, signature.signature))) return undefined;
    good.push(signature);
  }
  const signers = [...new Set(good.map(({ name }) => name))];
  return good.length > 0 ? { text: parts.text, signers, good } : undefined;
}

export interface NoteParts {
  readonly text: string;
  /** Unverified signatures. */
  readonly signatures: readonly NoteSignature[];
}

/** Splits a note without verification; `undefined` when malformed. */
export function splitNote(note: Uint8Array): NoteParts | undefined {
  let whole: string;
  try {
    whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(note);
  } catch {
    return undefined;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note has none but line breaks.
  if (/[\u0000-\u0009\u000b-\u001f]/.test(whole)) return undefined;
  const split = whole.lastIndexOf('\n\n');
  if (split < 0 || !whole.endsWith('\n')) return undefined;
  const lines = whole.slice(split + 2, -1).split('\n');
  if (lines.length > NOTE_SIGNATURES_MAX) return undefined;
  const signatures = lines.map((line) => {
    const [, name = '', base64 = ''] = /^— (\S+) (\S+)$/u.exec(line) ?? [];
    const bytes = fromBase64(base64);
    const whole = isName(name) && bytes !== undefined && bytes.length > KEY_ID_BYTES;
    return whole ? { name, keyId: bytes.slice(0, KEY_ID_BYTES), signature: bytes.slice(KEY_ID_BYTES) } : undefined;
  });
  if (!signatures.every((one) => one !== undefined)) return undefined;
  return { text: whole.slice(0, split + 1), signatures };
}
