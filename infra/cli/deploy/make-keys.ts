// Keys of an environment. A file that exists is read and never replaced.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { importJWK, type JWK, SignJWT } from 'jose';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { createKey, type KeyFile, writePrivate } from '../../identity/keys.ts';
import type { EnvironmentPlan } from './environment.ts';

const DAY_S = 86_400;
/** Lifetime of pool tokens, s. An identity provider renews shorter ones (AURICLE_TOKEN_URL). */
const POOL_TOKEN_S = 90 * DAY_S;
/** Lifetime of tokens of `deploy check`, s. */
const CHECK_TOKEN_S = 7 * DAY_S;
/** Tenant of `deploy check`. */
export const CHECK_TENANT = 'deploy-check';
export const CHECK_SCOPES = ['transcribe', 'uploads', 'models', 'audit', 'operate'] as const;

interface ZoneSecrets {
  /** Signs calls of the functions to the edge. */
  readonly service: KeyFile;
  /** 32 bytes in base64 each. */
  readonly audit: string;
  readonly sidecar: string;
  readonly webhook: string;
  /** Public half of `audit`, base64. */
  readonly auditPublic: string;
}

export interface EnvironmentKeys {
  readonly ticket: KeyFile;
  readonly grant: KeyFile;
  readonly edge: KeyFile;
  /** Issuer of pool tokens. */
  readonly pools: KeyFile;
  /** Issuer of tokens of `deploy check`. */
  readonly check: KeyFile;
  readonly zones: ReadonlyMap<string, ZoneSecrets>;
}

export const issuerOf = ({ domain }: EnvironmentPlan, key: 'pools' | 'check'): string => `https://${domain}/${key}`;
export const AUDIENCE = 'auricle';

/** Makes the keys that are missing below `folder`. */
export async function makeKeys(plan: EnvironmentPlan, folder: string): Promise<EnvironmentKeys> {
  const at = path.join(folder, 'keys');
  const [ticket, grant, edge, pools, check] = (await Promise.all(
    (['ticket', 'grant', 'edge', 'pools', 'check'] as const).map((name) => createKey(at, name, 'ES256')),
  )) as [KeyFile, KeyFile, KeyFile, KeyFile, KeyFile];
  const zones = new Map<string, ZoneSecrets>();
  for (const zone of plan.zones) {
    const own = path.join(at, zone);
    const [audit, sidecar, webhook] = ['audit', 'audit-sidecar', 'webhook'].map((name) => secret(own, name)) as [
      string,
      string,
      string,
    ];
    const { publicKey } = await openSigningKey(fromBase64(audit) ?? new Uint8Array());
    const service = await createKey(own, 'service', 'ES256');
    zones.set(zone, { service, audit, sidecar, webhook, auditPublic: toBase64(publicKey) });
  }
  return { ticket, grant, edge, pools, check, zones };
}

function secret(folder: string, name: string): string {
  const file = path.join(folder, `${name}.key`);
  if (!existsSync(file)) writePrivate(file, randomBytes(32).toString('base64'));
  return readFileSync(file, 'utf8').trim();
}

/** Signs a token that lets one pool join its zone, and nothing else. */
export const signPoolToken = (plan: EnvironmentPlan, key: JWK, pool: { name: string; zone: string }, nowS: number) =>
  sign(key, issuerOf(plan, 'pools'), { sub: pool.name, scope: 'pool', pool: pool.name, zone: pool.zone }, [
    nowS,
    POOL_TOKEN_S,
  ]);

/** Signs a token of `deploy check` that reaches the pools of one zone only. */
export const signCheckToken = (plan: EnvironmentPlan, key: JWK, zone: string, nowS: number) =>
  sign(
    key,
    issuerOf(plan, 'check'),
    {
      ...{ sub: 'deploy-check', tenant: CHECK_TENANT, scope: CHECK_SCOPES.join(' '), zones: [zone] },
      ...{ languages: ['*'], sealing: 'edge', audit: 'strict' },
    },
    [nowS, CHECK_TOKEN_S],
  );

async function sign(
  key: JWK,
  issuer: string,
  claims: Record<string, unknown>,
  [from, lives]: readonly [number, number],
) {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: key.kid as string })
    .setIssuer(issuer)
    .setAudience(AUDIENCE)
    .setJti(crypto.randomUUID())
    .setIssuedAt(from)
    .setExpirationTime(from + lives)
    .sign(await importJWK(key, 'ES256'));
}
