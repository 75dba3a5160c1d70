import { refuse } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { refusedWith, Session } from '../ledger/session.ts';

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
  if (!session.ok) {
    recordDenial(claims.value, action, session.refusal, context);
    return session;
  }
  try {
    const done = await work(claims.value);
    await session.value.end({ ...(done.ok ? { status: 200 } : refusedWith(done.refusal)), bytes: 0 });
    return done;
  } catch (error) {
    await session.value.end({ ...refusedWith(refuse('internal')), bytes: 0 });
    throw error;
  }
}
