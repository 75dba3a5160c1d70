// Keys that sign the logs: an Ed25519 key, and optionally a P-256 key, which may be in a vault.

import { isP256, openP256Key, type P256Key, p256Signer } from '../../../shared/audit/ecdsa.ts';
import { isEd25519Text, type KeyYears, keysIn, signsIn, yearOfName } from '../../../shared/audit/key-years.ts';
import { openSigningKey, type Signer } from '../../../shared/audit/note.ts';
import { formatNoteKey, type NoteKey } from '../../../shared/audit/note-key.ts';
import { formatPolicy, type Policy, readPolicy } from '../../../shared/audit/policy.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import type { Settings } from '../../settings.ts';
import type { VaultParts } from './vault-key.ts';

export interface LogKeys {
  /** The Ed25519 key of that year under that name; `undefined` where it is here no more, or not yet. */
  signer(name: string): Signer | undefined;
  /**
   * Returns the signers of a log's checkpoints: all keys of its year, Ed25519 first. Throws when the key is
   * not here.
   */
  signers(origin: string): readonly Signer[];
  /** Returns the suggested policy of a log: the keys of its year. */
  policy(origin: string): Policy;
}

type Given = Pick<Settings, 'AUDIT_KEY' | 'AUDIT_NEXT_KEY' | 'AUDIT_KEY_YEARS' | 'AUDIT_P256_KEY' | 'AUDIT_WITNESSES'>;

/**
 * Opens the keys of the settings; `undefined` without a key. `hardware` is a second key outside of the
 * settings, which may fail to sign: `unsigned` then gets the log and the reason. Throws when a setting is not
 * what it should be.
 */
export async function openLogKeys(
  given: Given,
  hardware?: P256Key,
  unsigned: (origin: string, error: unknown) => void = () => {},
): Promise<LogKeys | undefined> {
  const { AUDIT_P256_KEY, AUDIT_KEY_YEARS: years = [], AUDIT_WITNESSES = 'quorum none\n' } = given;
  const own = await openOwnKeys(given, years);
  if (own.length === 0) return undefined;
  const second = hardware ?? (AUDIT_P256_KEY === undefined ? undefined : await openP256Key(AUDIT_P256_KEY));
  if (!second && AUDIT_P256_KEY !== undefined) throw new Error('AUDIT_P256_KEY is no private key of P-256');
  const witnesses = readPolicy(new TextEncoder().encode(AUDIT_WITNESSES));
  if (!witnesses.ok) throw new Error(`AUDIT_WITNESSES is no policy: ${witnesses.refusal}`);
  for (const { key } of years) noteKeyOf('a log', key);
  const texts = [...own.map(({ text }) => text), ...(second ? [toBase64(second.publicKey)] : [])];
  const isOf = (name: string, text: string) => {
    const year = yearOfName(name);
    return year === undefined || signsIn(years, text, year);
  };
  const signer = (name: string) => own.find(({ text }) => isOf(name, text))?.key.signer(name);
  return {
    signer,
    signers(origin) {
      const first = signer(origin);
      if (!first) throw new Error(`no key here signs ${origin}: AUDIT_KEY_YEARS`);
      const also = second && isOf(origin, toBase64(second.publicKey));
      return [first, ...(also ? [reporting(p256Signer(second, origin), unsigned)] : [])];
    },
    policy(name) {
      const year = yearOfName(name);
      const keys = year === undefined ? texts : keysIn(years, texts, year);
      return { ...witnesses.value, logs: keys.map((text) => ({ key: noteKeyOf(name, text) })) };
    },
  };
}

/** The private Ed25519 keys that are here: of now, and, where it is there before its time, of the years to come. */
async function openOwnKeys({ AUDIT_KEY, AUDIT_NEXT_KEY }: Given, years: KeyYears) {
  const open = async (secret: string) => {
    const seed = fromBase64(secret);
    const key = seed && (await openSigningKey(seed));
    return key ? [{ key, text: toBase64(key.publicKey) }] : [];
  };
  const [now, next] = [AUDIT_KEY ? await open(AUDIT_KEY) : [], AUDIT_NEXT_KEY ? await open(AUDIT_NEXT_KEY) : []];
  const [one, other] = [now, next].map(([found]) => years.find(({ key }) => key === found?.text));
  const follows = other?.from !== undefined && one?.until === other.from - 1;
  if (now.length > 0 && next.length > 0 && !follows)
    throw new Error(
      'AUDIT_KEY_YEARS must say until which year AUDIT_KEY signs, and AUDIT_NEXT_KEY from the next one on',
    );
  return now.length > 0 ? [...now, ...next] : [];
}

function noteKeyOf(name: string, text: string): NoteKey {
  const publicKey = fromBase64(text) ?? new Uint8Array();
  if (isEd25519Text(text)) return { type: 'ed25519', name, publicKey };
  if (!isP256(publicKey)) throw new Error('AUDIT_KEY_YEARS names what is no public key of P-256');
  return { type: 'p256', name, publicKey };
}

/** Opens the key in a vault that the settings name. Throws when the vault has another key. */
export async function openVaultKey(
  { AUDIT_VAULT_KEY, AUDIT_P256_KEY }: Pick<Settings, 'AUDIT_VAULT_KEY' | 'AUDIT_P256_KEY'>,
  parts: Omit<VaultParts, 'credential'> & Partial<VaultParts>,
): Promise<P256Key | undefined> {
  if (!AUDIT_VAULT_KEY) return undefined;
  if (AUDIT_P256_KEY !== undefined) throw new Error('AUDIT_P256_KEY and AUDIT_VAULT_KEY are the same key twice');
  const { id, publicKey: written, identity: clientId } = AUDIT_VAULT_KEY;
  const publicKey = fromBase64(written);
  if (!publicKey || !isP256(publicKey)) throw new Error('AUDIT_VAULT_KEY: publicKey is no public key of P-256');
  // Loaded on demand: apps without a vault start without the two libraries.
  const { ManagedIdentityCredential } = await import('@azure/identity');
  const { VaultKey } = await import('./vault-key.ts');
  const credential =
    clientId === undefined ? new ManagedIdentityCredential() : new ManagedIdentityCredential({ clientId });
  const key = new VaultKey({ id, publicKey }, { credential, ...parts });
  await key.begin();
  return key;
}

const reporting = (signer: Signer, unsigned: (origin: string, error: unknown) => void): Signer => ({
  ...signer,
  sign: (text) =>
    signer.sign(text).catch((error: unknown) => {
      unsigned(signer.name, error);
      throw error;
    }),
});

/** Writes a policy as a file that people can read, too. */
export function writePolicy(policy: Policy): Uint8Array {
  const [first] = policy.logs;
  const head = [
    `# Whom to believe about ${first?.key.name ?? 'this log'} (C2SP tlog-policy). This is what the log itself says:`,
    '# keep a copy of the keys elsewhere, and choose your own witnesses.',
    ...policy.logs.map(({ key }) => `# ${key.type}: ${formatNoteKey(key).split('+')[1]}`),
    '',
  ];
  return new Uint8Array([...new TextEncoder().encode(head.join('\n')), ...formatPolicy(policy)]);
}
