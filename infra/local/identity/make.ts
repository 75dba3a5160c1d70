// Everything that says who is who in the local stack. The production counterparts are an identity provider, an
// attestation service and a key vault; the names of the local ones can be trusted only by development settings.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type KeyFile, keepKey, writePrivate } from './keys.ts';
import { developmentToken, poolToken } from './tokens.ts';

export const ATTESTATION_ISSUER = 'https://auricle.local/attestation';

export type Identity = {
  /** ES256, signs access tokens. The private half stays with the supervisor. */
  issuer: KeyFile;
  /** RS256, signs the self-issued attestation tokens of the agents. */
  attestation: KeyFile;
  /** ES256, signs the edge's tickets; the agents get the public half. */
  ticket: KeyFile;
  /** The development token, and the file it is kept in. */
  token: string;
  tokenFile: string;
  /** Pool name → file with its registration token. */
  poolTokenFiles: Record<string, string>;
};

export async function makeIdentity(state: string, pools: { name: string; zone: string }[]): Promise<Identity> {
  const folder = path.join(state, 'identity');
  const [issuer, attestation, ticket] = await Promise.all([
    keepKey(folder, 'issuer', 'ES256'),
    keepKey(folder, 'attestation', 'RS256'),
    keepKey(folder, 'ticket', 'ES256'),
  ]);
  const nowS = Math.floor(Date.now() / 1_000);
  const tokenFile = path.join(state, 'token');
  writePrivate(tokenFile, `${await developmentToken(issuer.privateKey, nowS)}\n`);
  const poolTokenFiles: Record<string, string> = {};
  for (const pool of pools) {
    const file = path.join(folder, 'pools', `${pool.name}.token`);
    writePrivate(file, `${await poolToken(issuer.privateKey, nowS, pool)}\n`);
    poolTokenFiles[pool.name] = file;
  }
  return { issuer, attestation, ticket, token: readFileSync(tokenFile, 'utf8').trim(), tokenFile, poolTokenFiles };
}
