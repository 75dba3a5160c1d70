import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, type Result } from '../../shared/result.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { countDenial } from '../telemetry/count-request.ts';
import { authenticate } from './authenticate.ts';

/**
 * Authenticates the caller and requires one of the scopes; a refusal names the first, the least privilege. Refusals are
 * recorded, a flood of unknown callers only by number.
 */
export async function admit(
  request: Pick<Request, 'headers'>,
  required: Scope | readonly [Scope, ...Scope[]],
  context: RequestContext,
): Promise<Result<Claims>> {
  const { id, recorder, settings, runtime } = context;
  const scopes = typeof required === 'string' ? ([required] as const) : required;
  const [scope] = scopes;
  const claims = await authenticate(request.headers.get('authorization'), settings.issuers, runtime.now());
  if (!claims.ok) {
    countDenial(context, undefined, scope, claims.refusal);
    return no(recorder.denyUnknown(id, scope, claims.refusal));
  }
  if (scopes.some((one) => claims.value.scopes.has(one))) return claims;
  return no(recordDenial(claims.value, scope, refuse('scope_missing', { scope }), context));
}

/** Records the refusal of an authenticated caller whose request has no attempt yet, and returns it. */
export function recordDenial(claims: Claims, action: string, refusal: Refusal, context: RequestContext): Refusal {
  const { tenant, subject } = claims;
  countDenial(context, claims, action, refusal);
  const event = context.recorder.mint({
    type: 'inference.denied',
    tenant,
    request: context.id,
    action,
    reason: refusal.reason,
    ...(subject !== undefined && { subject }),
    ...(refusal.detail !== undefined && { detail: refusal.detail }),
  });
  context.recorder.appendEventually(claims, { kind: 'record', events: [event] });
  return refusal;
}
