// Authentication of calls of the edge, and their scope.
import { createLocalJWKSet, decodeJwt, errors, jwtVerify } from 'jose';
import { z } from 'zod';
import { commitment } from '../../shared/audit/privacy.ts';
import { EDGE_ISSUER, FUNCTIONS_AUDIENCE, OWNER_HEADER, SERVICE_TYPE } from '../../shared/callers.ts';
import { CLOCK_SKEW_S, describeOffset } from '../../shared/clock-offset.ts';
import { SERVICE_TOKEN_S } from '../../shared/jobs/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Settings } from '../settings.ts';

export interface EdgeCaller {
  /** Only tenant whose uploads the call may access. */
  readonly tenant: string;
  /** Only subject whose uploads and projects the call may access. */
  readonly owner?: string;
  /** Only zones whose uploads and projects the call may access. */
  readonly zones?: readonly string[];
  /** The call is an operator's: it concerns a zone and no tenant. */
  readonly operate: boolean;
  /** Caller, as committed to by its gate. */
  readonly subject?: string;
}

/** Returns the token after `Bearer `; `undefined` without one. */
export const bearerOf = (header: string | null): string | undefined => /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];

export async function verifyEdge(
  authorization: string | null,
  { EDGE_KEYS }: Pick<Settings, 'EDGE_KEYS'>,
  now: number,
): Promise<Result<EdgeCaller>> {
  const token = bearerOf(authorization);
  if (token === undefined) return no(refuse('token_missing'));
  if (!EDGE_KEYS) return no(refuse('uploads_closed', undefined, 'no EDGE_KEYS'));
  try {
    const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(EDGE_KEYS), {
      issuer: EDGE_ISSUER,
      audience: FUNCTIONS_AUDIENCE,
      typ: SERVICE_TYPE,
      algorithms: ['ES256'],
      currentDate: new Date(now),
      clockTolerance: CLOCK_SKEW_S,
      maxTokenAge: SERVICE_TOKEN_S,
      requiredClaims: ['exp', 'iat', 'tenant'],
      crit: { [OWNER_HEADER]: true },
    });
    if (typeof payload.tenant !== 'string') return no(refuse('token_invalid', undefined, 'tenant'));
    const subject = commitment.optional().safeParse(payload.subject);
    if (!subject.success) return no(refuse('token_invalid', undefined, 'subject'));
    const named = subject.data !== undefined && { subject: subject.data };
    const zones = z.array(z.string()).optional().safeParse(payload.zones);
    if (!zones.success) return no(refuse('token_invalid', undefined, 'zones'));
    const within = zones.data !== undefined && { zones: zones.data };
    const owner = z.string().min(1).optional().safeParse(protectedHeader[OWNER_HEADER]);
    if (!owner.success) return no(refuse('token_invalid', undefined, OWNER_HEADER));
    const own = owner.data !== undefined && { owner: owner.data };
    return ok({ tenant: payload.tenant, operate: payload.operate === true, ...named, ...within, ...own });
  } catch (error) {
    const times = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed;
    const rule = times ? clockOf(token, now) : undefined;
    if (error instanceof errors.JWTExpired || rule !== undefined)
      return no(refuse('token_expired', rule === undefined ? undefined : { rule }));
    return no(refuse('token_invalid', undefined, error instanceof errors.JOSEError ? error.code : 'unreadable'));
  }
}

/** Describes the clock offset of a token: the edge signs each call when it makes it. */
function clockOf(token: string, now: number): string | undefined {
  const { iat } = decodeJwt(token);
  return iat === undefined ? undefined : describeOffset("the functions'", now, iat * 1_000);
}
