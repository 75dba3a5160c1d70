import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, type Result } from '../../shared/result.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { authenticate } from './authenticate.ts';

/**
 * Authenticates the caller and requires one of the scopes; a refusal names the first, the least privilege. Refusals are
 * recorded, a flood of unknown callers only by number.
 */
export function admit(
  request: Pick<Request, 'headers'>,
  wanted: Scope | readonly [Scope, ...Scope[]],
  context: RequestContext,
): Result<Claims> | Promise<Result<Claims>> {
  const { settings, surroundings } = context;
  const found = authenticate(request.headers.get('authorization'), settings.issuers, surroundings.now());
  // Nearly every request of a busy caller: known, and allowed what it asks for.
  if (!(found instanceof Promise) && found.ok && typeof wanted === 'string' && found.value.scopes.has(wanted)) {
    return found;
  }
  const enough = typeof wanted === 'string' ? ([wanted] as const) : wanted;
  const [scope] = enough;
  const judge = (claims: Result<Claims>) => judgeScopes(claims, enough, scope, context);
  return found instanceof Promise ? found.then(judge) : judge(found);
}

function judgeScopes(
  claims: Result<Claims>,
  enough: readonly Scope[],
  scope: Scope,
  context: RequestContext,
): Result<Claims> {
  if (!claims.ok) {
    context.recorder.deniedUnknown(context.id, scope, claims.refusal.reason, claims.refusal.detail);
    return claims;
  }
  if (enough.some((one) => claims.value.scopes.has(one))) return claims;
  const refusal = refuse('scope_missing', { scope });
  recordDenial(claims.value, scope, refusal, context);
  return no(refusal);
}

/** A known tenant was refused before its request became an attempt. */
export function recordDenial(claims: Claims, action: string, refusal: Refusal, context: RequestContext): void {
  const { tenant, subject } = claims;
  const event = context.recorder.mint({
    type: 'inference.denied',
    tenant,
    request: context.id,
    action,
    reason: refusal.reason,
    ...(subject !== undefined && { subject }),
    ...(refusal.detail !== undefined && { detail: refusal.detail }),
  });
  context.recorder.later(claims, [event]);
}
