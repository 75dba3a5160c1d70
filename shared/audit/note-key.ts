// Public keys of every supported type in the form of signed notes: `name+keyid+key`.

import { fromBase64, toBase64 } from '../base64.ts';
import { concat } from '../bytes.ts';
import { toHex } from '../hex.ts';
import { cosignatureKeyId, openCosignatureVerifier } from './cosignature.ts';
import { isP256, openP256Verifier, p256KeyId } from './ecdsa.ts';
import { isName, keyIdOf, openVerifier, type Verifier } from './note.ts';

const ED25519_BYTES = 32;

interface KeyKind {
  /** Type byte before the key. */
  readonly byte: number;
  fits(publicKey: Uint8Array): boolean;
  keyId(name: string, publicKey: Uint8Array): Uint8Array;
  open(name: string, publicKey: Uint8Array): Promise<Verifier>;
}

const isEd25519 = (publicKey: Uint8Array): boolean => publicKey.length === ED25519_BYTES;

const kinds = {
  ed25519: { byte: 1, fits: isEd25519, keyId: keyIdOf, open: openVerifier },
  p256: { byte: 2, fits: isP256, keyId: (_: string, key: Uint8Array) => p256KeyId(key), open: openP256Verifier },
  cosignature: { byte: 4, fits: isEd25519, keyId: cosignatureKeyId, open: openCosignatureVerifier },
} as const satisfies Record<string, KeyKind>;

/** Logs sign with the first two, witnesses with the last. */
export type NoteKeyType = keyof typeof kinds;

export interface NoteKey {
  readonly type: NoteKeyType;
  readonly name: string;
  /** 32 bytes of Ed25519, or the SPKI of P-256. */
  readonly publicKey: Uint8Array;
}

export function formatNoteKey({ type, name, publicKey }: NoteKey): string {
  const { byte, keyId } = kinds[type];
  return `${name}+${toHex(keyId(name, publicKey))}+${toBase64(concat(Uint8Array.of(byte), publicKey))}`;
}

/**
 * Parses a canonical key text; `undefined` for anything that `formatNoteKey` would not write, including other
 * key types.
 */
export function readNoteKey(text: string): NoteKey | undefined {
  const [name = '', , ...rest] = text.split('+');
  const bytes = fromBase64(rest.join('+'));
  const [type, kind] = Object.entries(kinds).find(([, { byte }]) => byte === bytes?.[0]) ?? [];
  const publicKey = bytes?.slice(1);
  if (!kind || !publicKey || !isName(name) || !kind.fits(publicKey)) return undefined;
  const key = { type: type as NoteKeyType, name, publicKey };
  return formatNoteKey(key) === text ? key : undefined;
}

/** Formats an Ed25519 key, the type of most logs. */
export const formatVerifierKey = (name: string, publicKey: Uint8Array): string =>
  formatNoteKey({ type: 'ed25519', name, publicKey });

/** Returns name and raw public key of an Ed25519 key text, otherwise `undefined`. */
export function readVerifierKey(text: string): { name: string; publicKey: Uint8Array } | undefined {
  const key = readNoteKey(text);
  return key?.type === 'ed25519' ? { name: key.name, publicKey: key.publicKey } : undefined;
}

/** Throws on an invalid key, such as a point off the curve. */
export const openNoteKey = ({ type, name, publicKey }: NoteKey): Promise<Verifier> => kinds[type].open(name, publicKey);
