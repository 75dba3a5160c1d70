import type { Result } from '../../shared/result.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import { admit } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { Session } from '../ledger/session.ts';

/** Runs work of a caller with the scope, within a lease of its allowance and with an audit record. */
export async function inSession<T>(
  request: Request,
  context: RequestContext,
  { scope, action }: { readonly scope: Scope; readonly action: string },
  work: (claims: Claims) => Promise<Result<T>>,
): Promise<Result<T>> {
  const claims = await admit(request, scope, context);
  if (!claims.ok) return claims;
  const subject = { action, model: undefined, language: undefined, class: 'batch' } as const;
  const session = await Session.begin(claims.value, subject, context);
  if (!session.ok) return session;
  const done = await session.value.guard(() => work(claims.value));
  if (done.ok) await session.value.end({ status: 200, bytes: 0 });
  return done;
}
