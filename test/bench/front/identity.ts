// Keys and tokens of the benchmark's edge, as the local stack makes them.
import path from 'node:path';
import { importJWK, SignJWT } from 'jose';
import { createKey } from '../../../infra/identity/keys.ts';

const ISSUER = 'https://bench.auricle.local/issuer';
const ATTESTATION_ISSUER = 'https://bench.auricle.local/attestation';
export const ZONE = 'eu';
export const POOL = 'bench';

/** Never reached: the cost of counting is measured, not the refusal. */
const BOUNDLESS = 1_000_000_000;

export interface Identity {
  readonly edgeBindings: Readonly<Record<string, string>>;
  readonly attestationKeyFile: string;
  readonly attestationIssuer: string;
  readonly poolToken: string;
  /** Token of another pool of the zone. */
  poolTokenOf(pool: string): Promise<string>;
  /** `claims` replace those of the usual tenant. */
  tenantToken(tenant: string, audit: 'buffered' | 'strict', claims?: Record<string, unknown>): Promise<string>;
}

export async function makeIdentity(folder: string): Promise<Identity> {
  const [issuer, attestation, ticket] = await Promise.all([
    createKey(path.join(folder, 'identity'), 'issuer', 'ES256'),
    createKey(path.join(folder, 'identity'), 'attestation', 'RS256'),
    createKey(path.join(folder, 'identity'), 'ticket', 'ES256'),
  ]);
  const signKey = await importJWK(issuer.privateKey, 'ES256');
  const sign = (claims: Record<string, unknown>) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: issuer.privateKey.kid as string })
      .setIssuer(ISSUER)
      .setAudience('auricle')
      .setSubject('bench')
      .setIssuedAt()
      .setExpirationTime('2h')
      .sign(signKey);
  const tokenIssuer = {
    issuer: ISSUER,
    audience: 'auricle',
    jwks: issuer.jwks,
    scopes: ['transcribe', 'infer', 'pool'],
  };
  const poolTokenOf = (pool: string) => sign({ scope: 'pool', pool, zone: ZONE });
  const authority = { profile: 'development', issuer: ATTESTATION_ISSUER, jwks: attestation.jwks };
  return {
    edgeBindings: {
      ISSUERS: JSON.stringify([tokenIssuer]),
      ATTESTATION: JSON.stringify({ issuers: [authority], development: true }),
      ZONES: JSON.stringify([ZONE]),
      MODE: 'development',
      TICKET_KEY: JSON.stringify(ticket.privateKey),
    },
    attestationKeyFile: attestation.privateFile,
    attestationIssuer: ATTESTATION_ISSUER,
    poolToken: await poolTokenOf(POOL),
    poolTokenOf,
    tenantToken: (tenant, audit, claims = {}) =>
      sign({
        tenant,
        scope: 'transcribe',
        zones: [ZONE],
        audit,
        allowance: { requestsPerMinute: BOUNDLESS, requestsAtOnce: 4_096, audioSecondsPerDay: BOUNDLESS },
        ...claims,
      }),
  };
}
