// Identities of the local stack. The production counterparts are an identity provider, an attestation service
// and a key vault; only development settings trust the local ones.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createKey, type KeyFile, writePrivate } from '../../identity/keys.ts';
import { type AuditKeys, createAuditKeys } from './audit-keys.ts';
import { createSigners } from './signers.ts';
import { developmentToken, poolToken } from './tokens.ts';
import { createZoneKeys, type ZoneKeyFiles } from './zone-keys.ts';

export const ATTESTATION_ISSUER = 'https://auricle.local/attestation';

export type Identity = {
  /** ES256, signs access tokens. The private half stays with the supervisor. */
  issuer: KeyFile;
  /** RS256, signs the self-issued attestation tokens of the agents. */
  attestation: KeyFile;
  /** ES256, signs the edge's tickets; the agents get the public half. */
  ticket: KeyFile;
  /** ES256, signs the edge's short-lived tokens. */
  grant: KeyFile;
  /** ES256, signs the edge's calls to the functions. */
  edge: KeyFile;
  /** ES256, signs the functions' calls to the edge. */
  service: KeyFile;
  /** Keys that files are sealed to. */
  zoneKeys: ZoneKeyFiles;
  /** File with the secret that webhook secrets are derived from, base64. */
  webhookKeyFile: string;
  /** Keys that sign and encrypt the audit logs. */
  audit: AuditKeys;
  /** Trusted signers of revisions, by public key. */
  signers: ReturnType<typeof createSigners>;
  /** Development token, and its file. */
  token: string;
  tokenFile: string;
  /** Pool name → file with its registration token. */
  poolTokenFiles: Record<string, string>;
};

export async function makeIdentity(state: string, pools: { name: string; zone: string }[]): Promise<Identity> {
  const folder = path.join(state, 'identity');
  const [issuer, attestation, ticket, grant, edge, service] = await Promise.all([
    createKey(folder, 'issuer', 'ES256'),
    createKey(folder, 'attestation', 'RS256'),
    createKey(folder, 'ticket', 'ES256'),
    createKey(folder, 'grant', 'ES256'),
    createKey(folder, 'edge', 'ES256'),
    createKey(folder, 'service', 'ES256'),
  ]);
  const zones = [...new Set(pools.map((pool) => pool.zone))];
  const zoneKeys = await createZoneKeys(folder, zones);
  const webhookKeyFile = path.join(folder, 'webhook.key');
  if (!existsSync(webhookKeyFile)) writePrivate(webhookKeyFile, randomBytes(32).toString('base64'));
  const audit = await createAuditKeys(folder);
  const signers = createSigners(folder);
  const nowS = Math.floor(Date.now() / 1_000);
  const tokenFile = path.join(state, 'token');
  writePrivate(tokenFile, `${await developmentToken(issuer.privateKey, nowS, zones)}\n`);
  const poolTokenFiles: Record<string, string> = {};
  for (const pool of pools) {
    const file = path.join(folder, 'pools', `${pool.name}.token`);
    writePrivate(file, `${await poolToken(issuer.privateKey, nowS, pool)}\n`);
    poolTokenFiles[pool.name] = file;
  }
  const token = readFileSync(tokenFile, 'utf8').trim();
  return {
    issuer,
    attestation,
    ticket,
    grant,
    edge,
    service,
    zoneKeys,
    webhookKeyFile,
    audit,
    signers,
    token,
    tokenFile,
    poolTokenFiles,
  };
}
