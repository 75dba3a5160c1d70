// The keys of the audit logs of the local stack.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fromBase64, toBase64 } from '../../../shared/audit/base64.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { writePrivate } from './keys.ts';

/** What the names of the local logs begin with. */
export const AUDIT_ORIGIN = 'auricle.local/audit';

export type AuditKeys = {
  /** 32 bytes in base64: the private key of the logs, and the key of the sidecars. */
  keyFile: string;
  sidecarKeyFile: string;
  /** The public key of the logs, base64. */
  publicKey: string;
};

export async function keepAuditKeys(folder: string): Promise<AuditKeys> {
  const [keyFile, sidecarKeyFile] = [path.join(folder, 'audit.key'), path.join(folder, 'audit-sidecar.key')];
  for (const file of [keyFile, sidecarKeyFile]) {
    if (!existsSync(file)) writePrivate(file, randomBytes(32).toString('base64'));
  }
  const seed = fromBase64(readFileSync(keyFile, 'utf8').trim());
  if (!seed) throw new Error(`${keyFile} is no key`);
  const { publicKey } = await openSigningKey(seed);
  return { keyFile, sidecarKeyFile, publicKey: toBase64(publicKey) };
}
