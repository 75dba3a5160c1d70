// What the logs are signed with: an Ed25519 key, and beside it a P-256 key, which may be one that hardware keeps.
import { fromBase64 } from '../../../shared/audit/base64.ts';
import { openP256Key, type P256Key, p256Signer } from '../../../shared/audit/ecdsa.ts';
import { openSigningKey, type Signer } from '../../../shared/audit/note.ts';
import { formatNoteKey, type NoteKey } from '../../../shared/audit/note-key.ts';
import { formatPolicy, type Policy, readPolicy } from '../../../shared/audit/policy.ts';
import type { Settings } from '../../settings.ts';

export interface LogKeys {
  /** The Ed25519 key under that name. */
  signer(name: string): Signer;
  /** Who signs the checkpoints of the log of that name: all keys there are. */
  signers(origin: string): readonly Signer[];
  /** Whom to believe about the log of that name, as far as we can say. */
  policy(origin: string): Policy;
}

type Given = Pick<Settings, 'AUDIT_KEY' | 'AUDIT_P256_KEY' | 'AUDIT_WITNESSES'>;

/** `undefined` without a key. A second key may be given that no setting holds. Throws when a setting is not what it should be. */
export async function openLogKeys(
  { AUDIT_KEY, AUDIT_P256_KEY, AUDIT_WITNESSES = 'quorum none\n' }: Given,
  hardware?: P256Key,
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
    signers: (origin) => [first.signer(origin), ...(second ? [p256Signer(second, origin)] : [])],
    policy(name) {
      const keys: NoteKey[] = [{ type: 'ed25519', name, publicKey: first.publicKey }];
      if (second) keys.push({ type: 'p256', name, publicKey: second.publicKey });
      return { ...witnesses.value, logs: keys.map((key) => ({ key })) };
    },
  };
}

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
