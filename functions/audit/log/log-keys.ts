// What the logs are signed with: an Ed25519 key, and beside it a P-256 key, which may be one that a vault keeps.
import { fromBase64 } from '../../../shared/audit/base64.ts';
import { isP256, openP256Key, type P256Key, p256Signer } from '../../../shared/audit/ecdsa.ts';
import { openSigningKey, type Signer } from '../../../shared/audit/note.ts';
import { formatNoteKey, type NoteKey } from '../../../shared/audit/note-key.ts';
import { formatPolicy, type Policy, readPolicy } from '../../../shared/audit/policy.ts';
import type { Settings } from '../../settings.ts';
import type { VaultParts } from './ask-vault.ts';
import { VaultKey } from './vault-key.ts';

export interface LogKeys {
  /** The Ed25519 key under that name. */
  signer(name: string): Signer;
  /** Who signs the checkpoints of the log of that name: all keys there are. The first always can. */
  signers(origin: string): readonly Signer[];
  /** Whom to believe about the log of that name, as far as we can say. */
  policy(origin: string): Policy;
}

type Given = Pick<Settings, 'AUDIT_KEY' | 'AUDIT_P256_KEY' | 'AUDIT_WITNESSES'>;

/**
 * `undefined` without a key. A second key may be given that no setting holds, and does not always sign: `unsigned` is told of
 * the log and the reason. Throws when a setting is not what it should be.
 */
export async function openLogKeys(
  { AUDIT_KEY, AUDIT_P256_KEY, AUDIT_WITNESSES = 'quorum none\n' }: Given,
  hardware?: P256Key,
  unsigned: (origin: string, error: unknown) => void = () => {},
): Promise<LogKeys | undefined> {
  const seed = AUDIT_KEY === undefined ? undefined : fromBase64(AUDIT_KEY);
  if (!seed) return undefined;
  const first = await openSigningKey(seed);
  const second = hardware ?? (AUDIT_P256_KEY === undefined ? undefined : await openP256Key(AUDIT_P256_KEY));
  if (!second && AUDIT_P256_KEY !== undefined) throw new Error('AUDIT_P256_KEY is no private key of P-256');
  const witnesses = readPolicy(new TextEncoder().encode(AUDIT_WITNESSES));
  if (!witnesses.ok) throw new Error(`AUDIT_WITNESSES is no policy: ${witnesses.refusal}`);
  return {
    signer: (name) => first.signer(name),
    signers: (origin) => [first.signer(origin), ...(second ? [telling(p256Signer(second, origin), unsigned)] : [])],
    policy(name) {
      const keys: NoteKey[] = [{ type: 'ed25519', name, publicKey: first.publicKey }];
      if (second) keys.push({ type: 'p256', name, publicKey: second.publicKey });
      return { ...witnesses.value, logs: keys.map((key) => ({ key })) };
    },
  };
}

/** The key that a vault keeps, if settings name one. Throws when it is not the one that they name. */
export async function openVaultKey(
  { AUDIT_VAULT_KEY, AUDIT_P256_KEY, IDENTITY_ENDPOINT, IDENTITY_HEADER }: GivenVault,
  parts: VaultParts,
): Promise<P256Key | undefined> {
  if (!AUDIT_VAULT_KEY) return undefined;
  if (AUDIT_P256_KEY !== undefined) throw new Error('AUDIT_P256_KEY and AUDIT_VAULT_KEY are the same key twice');
  if (IDENTITY_ENDPOINT === undefined || IDENTITY_HEADER === undefined)
    throw new Error('AUDIT_VAULT_KEY needs an identity of the app: IDENTITY_ENDPOINT and IDENTITY_HEADER are missing');
  const { id, publicKey: written, identity: client } = AUDIT_VAULT_KEY;
  const publicKey = fromBase64(written);
  if (!publicKey || !isP256(publicKey)) throw new Error('AUDIT_VAULT_KEY: publicKey is no public key of P-256');
  const key = new VaultKey({ id, publicKey }, { endpoint: IDENTITY_ENDPOINT, header: IDENTITY_HEADER, client }, parts);
  await key.begin();
  return key;
}

type GivenVault = Pick<Settings, 'AUDIT_VAULT_KEY' | 'AUDIT_P256_KEY' | 'IDENTITY_ENDPOINT' | 'IDENTITY_HEADER'>;

const telling = (signer: Signer, unsigned: (origin: string, error: unknown) => void): Signer => ({
  ...signer,
  sign: (text) =>
    signer.sign(text).catch((error: unknown) => {
      unsigned(signer.name, error);
      throw error;
    }),
});

/** The same as a file, to be read by people as well. */
export function writePolicy(policy: Policy): Uint8Array {
  const [first] = policy.logs;
  const said = [
    `# Whom to believe about ${first?.key.name ?? 'this log'} (C2SP tlog-policy). This is what the log itself says:`,
    '# keep a copy of the keys elsewhere, and choose your own witnesses.',
    ...policy.logs.map(({ key }) => `# ${key.type}: ${formatNoteKey(key).split('+')[1]}`),
    '',
  ];
  return new Uint8Array([...new TextEncoder().encode(said.join('\n')), ...formatPolicy(policy)]);
}
