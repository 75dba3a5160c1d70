import {
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { z } from 'zod';
import { CLOCK_SKEW_S } from '../../shared/clock-offset.ts';
import { ANSWER_START_MS } from '../../shared/pool/limits.ts';
import { type Reason, type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, readClaims } from '../../shared/tenant/claims.ts';
import { allowsScope, allowsTenant, allowsType } from '../../shared/tenant/issuer.ts';
import { TOKEN_CHARACTERS } from '../../shared/tenant/limits.ts';
import { GRANTS, type Issuer } from '../settings-schema.ts';
import { TokenCache } from './token-cache.ts';

/** Claims of a token that lets an agent join the roster of its zone (shared/pool/PROTOCOL.md). */
export interface PoolClaims {
  readonly pool: string;
  readonly zone: string;
  /** Seconds since 1970. */
  readonly expires: number;
}

const poolPayload = z.object({ pool: z.string().min(1), zone: z.string().min(1), scope: z.string(), exp: z.number() });

const tenantTokens = new TokenCache<Claims>();

/** Key sets of this isolate. jose fetches a remote one again when a key is unknown, at most every 30 s. */
const keySets = new WeakMap<Issuer, JWTVerifyGetKey>();

/**
 * Verifies the bearer token and returns its claims. The caller of this function checks what they allow.
 * Refuses with token_missing, token_invalid, token_expired, audience_wrong or identity_unavailable.
 */
export async function authenticate(
  authorization: string | null | undefined,
  issuers: readonly Issuer[],
  now: number,
): Promise<Result<Claims>> {
  const cached = authorization ? tenantTokens.get(authorization, now) : undefined;
  if (cached) return ok(cached);
  const token = readBearer(authorization);
  if (!token.ok) return token;
  const speaksFor = (issuer: Issuer, { tenant }: JWTPayload) => allowsTenant(issuer, tenant);
  const verified = await verify(token.value, { issuers, now, allows: speaksFor });
  if (!verified.ok) return verified;
  const { payload, issuer } = verified.value;
  const read = readClaims(payload);
  if (!read.ok) return read;
  const claims = boundClaims(read.value, issuer);
  if (authorization) tenantTokens.put(authorization, claims, claims.expires, now);
  return ok(claims);
}

/** The claims without scopes that their issuer must not grant. */
function boundClaims(claims: Claims, issuer: Issuer): Claims {
  const scopes = new Set([...claims.scopes].filter((scope) => allowsScope(issuer, scope)));
  if (issuer.issuer === GRANTS.issuer) return { ...claims, scopes, granted: true };
  // Only the edge may bound single tokens: its token identifiers are unique.
  const { share: _, ...others } = claims;
  return { ...others, scopes };
}

/** Authenticates an agent by scope `pool`. Called once per connection, so nothing is cached. */
export async function authenticatePool(
  authorization: string | null | undefined,
  issuers: readonly Issuer[],
  now: number,
): Promise<Result<PoolClaims>> {
  const token = readBearer(authorization);
  if (!token.ok) return token;
  const joins = (issuer: Issuer) => allowsScope(issuer, 'pool');
  const verified = await verify(token.value, { issuers, now, allows: joins });
  if (!verified.ok) return verified;
  const parsed = poolPayload.safeParse(verified.value.payload);
  if (!parsed.success || !parsed.data.scope.split(' ').includes('pool')) {
    return no(refuse('scope_missing', { scope: 'pool' }));
  }
  return ok({ pool: parsed.data.pool, zone: parsed.data.zone, expires: parsed.data.exp });
}

function readBearer(authorization: string | null | undefined): Result<string> {
  if (!authorization) return no(refuse('token_missing'));
  // Scheme names are case-insensitive (RFC 9110 §11.1), and Python clients send "bearer"; Deepgram's send "Token".
  const match = /^(?:bearer|token) +(?:ek_)?([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(authorization.trim());
  if (!match || authorization.length > TOKEN_CHARACTERS) {
    return no(refuse('token_invalid', undefined, 'not a compact JWS in a Bearer header'));
  }
  return ok(match[1] as string);
}

interface Verified {
  readonly payload: JWTPayload;
  /** Issuer entry that the token satisfies. */
  readonly issuer: Issuer;
}

interface Verification {
  readonly issuers: readonly Issuer[];
  readonly now: number;
  /** Reports whether the entry may issue such a token. */
  readonly allows: (issuer: Issuer, payload: JWTPayload) => boolean;
}

async function verify(token: string, { issuers, now, allows }: Verification): Promise<Result<Verified>> {
  let claimed: string | undefined;
  try {
    claimed = decodeJwt(token).iss;
  } catch {
    return no(refuse('token_invalid', undefined, 'cannot be decoded'));
  }
  // One issuer may serve several audiences: all its entries are tried, and the nearest miss is returned.
  let nearest = refuse('token_invalid', undefined, 'unknown issuer');
  for (const issuer of issuers) {
    if (issuer.issuer !== claimed) continue;
    try {
      const { payload, protectedHeader } = await jwtVerify(token, keySetOf(issuer), {
        issuer: issuer.issuer,
        audience: issuer.audience,
        algorithms: [...issuer.algorithms],
        // The edge's own tokens need no tolerance for clocks, and often live for seconds only.
        clockTolerance: issuer.issuer === GRANTS.issuer ? 0 : CLOCK_SKEW_S,
        currentDate: new Date(now),
        requiredClaims: ['exp'],
      });
      const typed = allowsType(issuer, protectedHeader.typ);
      if (typed && allows(issuer, payload)) return ok({ payload, issuer });
      nearest = nearer(nearest, refuse('token_invalid', undefined, typed ? 'beyond the bounds of its issuer' : 'typ'));
    } catch (error) {
      nearest = nearer(nearest, refusalFor(error));
    }
  }
  return no(nearest);
}

/**
 * Misses from far to near: an expired token was right in all else; an unchecked one may be right; the others
 * are wrong.
 */
const misses: readonly Reason[] = ['token_invalid', 'audience_wrong', 'identity_unavailable', 'token_expired'];
const nearness = ({ reason }: Refusal): number => misses.indexOf(reason);
const nearer = (one: Refusal, other: Refusal): Refusal => (nearness(other) >= nearness(one) ? other : one);

function refusalFor(error: unknown): Refusal {
  if (error instanceof errors.JWTExpired) return refuse('token_expired');
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud') return refuse('audience_wrong');
  const code = error instanceof errors.JOSEError ? error.code : undefined;
  if (code !== undefined && !keyFaults.has(code)) return refuse('token_invalid', undefined, code);
  // Without the issuer's key set the token can be neither trusted nor refused.
  return refuse('identity_unavailable', undefined, `keys of the issuer are not available: ${code ?? 'unreachable'}`);
}

/** Codes of jose for a missing or invalid key set. A failed network is no error of jose. */
const keyFaults: ReadonlySet<string> = new Set([
  errors.JWKSTimeout.code,
  errors.JWKSInvalid.code,
  errors.JOSEError.code,
]);

function keySetOf(issuer: Issuer): JWTVerifyGetKey {
  let keys = keySets.get(issuer);
  if (!keys) {
    keys = issuer.jwks
      ? createLocalJWKSet(issuer.jwks)
      : createRemoteJWKSet(new URL(issuer.jwksUrl as string), { timeoutDuration: ANSWER_START_MS });
    keySets.set(issuer, keys);
  }
  return keys;
}
