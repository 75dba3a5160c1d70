import { importJWK, SignJWT } from 'jose';
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import type { Settings } from '../settings.ts';
import { GRANTS } from '../settings-schema.ts';

export interface Grant {
  readonly token: string;
  /** Seconds since 1970. */
  readonly expires: number;
}

/** All that a token for somebody else's device opens: live sound. It cannot be exchanged for another one. */
export const GRANT_SCOPE: Scope = 'stream';

type SigningKey = Awaited<ReturnType<typeof importJWK>>;

const keys = new WeakMap<Settings, SigningKey>();

/**
 * A token for a phone or browser, made of the caller's own: the same tenant, subject, zones, languages and allowance,
 * only the scope is less and the time is short. It never outlives the caller's token. Refuses with `grant_closed` or `token_invalid`.
 */
export async function issueGrant(
  claims: Claims,
  seconds: number,
  settings: Settings,
  now: number,
  realtime?: Readonly<Record<string, unknown>>,
): Promise<Result<Grant>> {
  const { grantKey } = settings;
  if (!grantKey) return no(refuse('grant_closed'));
  let key = keys.get(settings);
  if (!key) {
    key = await importJWK(grantKey, 'ES256');
    keys.set(settings, key);
  }
  const issued = Math.floor(now / 1_000);
  const expires = Math.min(issued + seconds, claims.expires);
  const { tenant, subject, languages, zones, priority, sealing, audit, mirror, visibility } = claims;
  const { sessionSeconds, idleSeconds, allowance } = claims;
  const { kid } = grantKey;
  const lasts = { sessionSeconds, ...(idleSeconds !== undefined && { idleSeconds }) };
  const allows = {
    languages,
    zones,
    priority,
    sealing,
    audit,
    ...(mirror && { mirror }),
    ...(visibility && { visibility }),
  };
  const payload = { tenant, scope: GRANT_SCOPE, ...allows, ...lasts, allowance };
  const draft = new SignJWT({ ...payload, ...(realtime && { realtime }) })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...(kid !== undefined && { kid }) })
    .setIssuer(GRANTS.issuer)
    .setAudience(GRANTS.audience)
    .setJti(crypto.randomUUID())
    .setIssuedAt(issued)
    .setExpirationTime(expires);
  const token = await (subject === undefined ? draft : draft.setSubject(subject)).sign(key);
  // A configuration that makes a token nobody would take is the caller's to shorten.
  if (token.length > limits.grantCharacters.value) {
    return no(refuse('field_invalid', { field: 'session', rule: 'is too long to be remembered in a token' }));
  }
  return ok({ token, expires });
}
