// Tokens of the local stack: one for the developer, one for each pool.
import { importJWK, type JWK, SignJWT } from 'jose';

export const ISSUER = 'https://auricle.local/issuer';
export const AUDIENCE = 'auricle';

const DAY_S = 86_400;
/**
 * Lifetime of tokens, s. Every start makes new ones, so it bounds the use of a forgotten stack or a copied
 * token.
 */
const TOKEN_S = 30 * DAY_S;

/** Every scope but `pool`: the development token is a tenant's and must not enter the roster. */
const SCOPES = [
  ...['transcribe', 'stream', 'synthesize', 'infer', 'models', 'uploads', 'projects', 'audit', 'compliance', 'operate'],
];

/** Claims of the developer. */
export const developer = {
  tenant: 'dev',
  scope: SCOPES.join(' '),
  languages: ['*'],
  priority: 'realtime',
  sealing: 'edge',
  audit: 'strict',
  sessionSeconds: 3_600,
  uploads: 'plain',
  keepDays: 7,
  // Far above the defaults: the developer runs the load client against the stack.
  allowance: { requestsPerMinute: 100_000, requestsAtOnce: 1_000, audioSecondsPerDay: 10_000_000 },
} as const;

/** Signs the token of the developer, for the zones of the pools; the first is its home. */
export const developmentToken = (key: JWK, nowS: number, zones: readonly string[]): Promise<string> =>
  sign(key, nowS, 'developer', { ...developer, zones });

/** Lets one pool join the roster of its zone, and nothing else. */
export function poolToken(key: JWK, nowS: number, pool: { name: string; zone: string }): Promise<string> {
  return sign(key, nowS, pool.name, { scope: 'pool', pool: pool.name, zone: pool.zone });
}

async function sign(key: JWK, nowS: number, subject: string, claims: Record<string, unknown>): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: key.kid as string })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject(subject)
    .setJti(crypto.randomUUID())
    .setIssuedAt(nowS)
    .setExpirationTime(nowS + TOKEN_S)
    .sign(await importJWK(key, 'ES256'));
}
