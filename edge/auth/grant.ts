import { importJWK, type JWTPayload, SignJWT } from 'jose';
import { KiB } from '../../shared/bytes.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims, GrantScope, ShareAllowance } from '../../shared/tenant/claims.ts';
import { AUDIO_PER_DAY_S, REQUESTS_CONCURRENT, REQUESTS_PER_MINUTE } from '../limits.ts';
import type { Settings } from '../settings.ts';
import { GRANTS } from '../settings-schema.ts';

/**
 * Granted token, which may carry the configuration of a session; browsers send it in a header of bounded
 * length.
 */
const GRANT_CHARACTERS = 4 * KiB;
/** Longest life of a token for a device, over all protocols; Deepgram has the same bound. */
export const GRANT_S = 3_600;

export interface Grant {
  readonly token: string;
  /** Seconds since 1970. */
  readonly expires: number;
  readonly scope: string;
  /** Subject of the grant, where it differs from the caller's. */
  readonly grantee: string | undefined;
}

/** Parameters of a grant. */
export interface GrantRequest {
  readonly seconds: number;
  readonly scopes: readonly GrantScope[];
  readonly subject?: string | undefined;
  /** Bounds of this grant. */
  readonly allowance?: ShareAllowance | undefined;
  /** Configuration of its realtime session. */
  readonly realtime?: Readonly<Record<string, unknown>> | undefined;
}

interface Decided {
  readonly payload: JWTPayload;
  readonly subject: string | undefined;
  readonly expires: number;
}

/**
 * Decides the claims of a grant. It exceeds the caller's claims in nothing: tenant, languages, zones, class,
 * sealing, audit and allowance are equal, its scopes are fewer, and it expires with them or within
 * `GRANT_S`. Refuses with `grant_repeated` or `field_invalid`.
 */
export function decideGrant(claims: Claims, request: GrantRequest, now: number): Result<Decided> {
  if (claims.granted) return no(refuse('grant_repeated'));
  const { subject = claims.subject } = request;
  if (claims.visibility === 'subject' && subject !== claims.subject) {
    return no(refuse('field_invalid', { field: 'sub', rule: 'must be that of the token, which is limited to it' }));
  }
  const share = request.allowance && decideShare(claims.allowance, request.allowance);
  if (share && !share.ok) return share;
  const { tenant, languages, zones, priority, sealing, audit, mirror, visibility } = claims;
  const { sessionSeconds, idleSeconds, allowance } = claims;
  const payload = {
    ...{
      tenant,
      scope: request.scopes.join(' '),
      languages,
      zones,
      priority,
      sealing,
      audit,
      sessionSeconds,
      allowance,
    },
    ...(idleSeconds !== undefined && { idleSeconds }),
    ...(mirror && { mirror }),
    ...(visibility && { visibility }),
    ...(share && { share: share.value }),
    ...(request.realtime && { realtime: request.realtime }),
  };
  const seconds = Math.min(request.seconds, GRANT_S);
  return ok({ payload, subject, expires: Math.min(Math.floor(now / 1_000) + seconds, claims.expires) });
}

const bounds = {
  requestsPerMinute: ['requests_per_minute', REQUESTS_PER_MINUTE],
  requestsAtOnce: ['requests_at_once', REQUESTS_CONCURRENT],
  audioSecondsPerDay: ['audio_seconds_per_day', AUDIO_PER_DAY_S],
} as const;

/** Returns the bounds of the grant: the requested ones, at most the caller's, which are also the default. */
function decideShare(allowance: Claims['allowance'], requested: ShareAllowance): Result<ShareAllowance> {
  const share: Record<string, number> = {};
  for (const name of Object.keys(bounds) as (keyof typeof bounds)[]) {
    const [field, usual] = bounds[name];
    const most = allowance[name] ?? usual;
    const value = requested[name] ?? most;
    if (value > most) {
      return no(refuse('field_invalid', { field: `allowance.${field}`, rule: `must be at most ${most}` }));
    }
    share[name] = value;
  }
  return ok(share);
}

type SigningKey = Awaited<ReturnType<typeof importJWK>>;

const keys = new WeakMap<Settings, SigningKey>();

/** Signs a token for a phone or browser. Refuses with `grant_closed`, and as `decideGrant` does. */
export async function issueGrant(
  claims: Claims,
  request: GrantRequest,
  settings: Settings,
  now: number,
): Promise<Result<Grant>> {
  const { grantKey } = settings;
  if (!grantKey) return no(refuse('grant_closed'));
  const decided = decideGrant(claims, request, now);
  if (!decided.ok) return decided;
  let key = keys.get(settings);
  if (!key) {
    key = await importJWK(grantKey, 'ES256');
    keys.set(settings, key);
  }
  const { payload, subject, expires } = decided.value;
  const { kid } = grantKey;
  const draft = new SignJWT(payload)
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...(kid !== undefined && { kid }) })
    .setIssuer(GRANTS.issuer)
    .setAudience(GRANTS.audience)
    .setJti(crypto.randomUUID())
    .setIssuedAt(Math.floor(now / 1_000))
    .setExpirationTime(expires);
  const token = await (subject === undefined ? draft : draft.setSubject(subject)).sign(key);
  // The caller must shorten a configuration whose token would exceed what clients can send.
  if (token.length > GRANT_CHARACTERS) {
    return no(refuse('field_invalid', { field: 'session', rule: 'is too long to be remembered in a token' }));
  }
  const grantee = subject === claims.subject ? undefined : subject;
  return ok({ token, expires, scope: request.scopes.join(' '), grantee });
}
