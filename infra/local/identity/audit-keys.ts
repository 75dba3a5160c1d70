// The keys of the audit logs of the local stack.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openP256Key } from '../../../shared/audit/ecdsa.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { formatNoteKey } from '../../../shared/audit/note-key.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { writePrivate } from '../../identity/keys.ts';

/** Prefix of the names of the local logs. */
export const AUDIT_ORIGIN = 'auricle.local/audit';
/** Name of the local witness, which proves nothing: the operator of the logs runs it. */
export const WITNESS_NAME = 'auricle.local/witness';

export type AuditKeys = {
  /** 32 bytes in base64: the private key of the logs, and the key of the sidecars. */
  keyFile: string;
  sidecarKeyFile: string;
  /** A second private key of the logs, P-256, PKCS #8 in base64. */
  p256KeyFile: string;
  /** 32 bytes in base64: the private key of the witness. */
  witnessKeyFile: string;
  /** The public key of the logs, base64. */
  publicKey: string;
  /** The keys of the log of that name, and of the witness, as signed notes write them. */
  logKeys(origin: string): string[];
  witnessKey: string;
};

export async function createAuditKeys(folder: string): Promise<AuditKeys> {
  const [keyFile, sidecarKeyFile, witnessKeyFile] = ['audit.key', 'audit-sidecar.key', 'witness.key'].map((name) => {
    const file = path.join(folder, name);
    if (!existsSync(file)) writePrivate(file, randomBytes(32).toString('base64'));
    return file;
  }) as [string, string, string];
  const p256KeyFile = path.join(folder, 'audit-p256.key');
  if (!existsSync(p256KeyFile)) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writePrivate(p256KeyFile, privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'));
  }
  const second = await openP256Key(readFileSync(p256KeyFile, 'utf8'));
  if (!second) throw new Error(`${p256KeyFile} is no key`);
  const [first, witness] = await Promise.all([keyFile, witnessKeyFile].map(publicKeyIn));
  if (!first || !witness) throw new Error('a key is missing');
  return {
    ...{ keyFile, sidecarKeyFile, p256KeyFile, witnessKeyFile },
    publicKey: toBase64(first),
    logKeys: (name) => [
      formatNoteKey({ type: 'ed25519', name, publicKey: first }),
      formatNoteKey({ type: 'p256', name, publicKey: second.publicKey }),
    ],
    witnessKey: formatNoteKey({ type: 'cosignature', name: WITNESS_NAME, publicKey: witness }),
  };
}

async function publicKeyIn(file: string): Promise<Uint8Array> {
  const seed = fromBase64(readFileSync(file, 'utf8').trim());
  if (!seed) throw new Error(`${file} is no key`);
  return (await openSigningKey(seed)).publicKey;
}
