// The allowance of one token: the same counters as a tenant's, stored until the token expires.
import type { Refusal } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { TokenShare } from '../../shared/tenant/claims.ts';
import { type AdmissionRequest, type AllowanceState, book, freshAllowance, take } from './allowance.ts';
import { type Figure, type Quota, quotaOf, refusalWithRetry } from './quota.ts';

/** The usage of one token, without leases: those of the tenant name the token. */
export type ShareState = Omit<AllowanceState, 'leases' | 'reserves' | 'leaseMs'>;

const withoutLeases = ({ recent = [], day, seconds }: AllowanceState): ShareState => ({ recent, day, seconds });

/** The counters of a token, with its leases among those of the tenant. */
function stateOf(state: ShareState | undefined, tenant: AllowanceState, { id }: Pick<TokenShare, 'id'>) {
  const leases = Object.fromEntries(Object.entries(tenant.leases).filter(([, { share }]) => share === id));
  return { ...freshAllowance, ...state, leases, ...(tenant.leaseMs !== undefined && { leaseMs: tenant.leaseMs }) };
}

/** Leases a slot of the token. `tenant` is the tenant's state before the request has one. */
export function takeShare(
  state: ShareState | undefined,
  tenant: AllowanceState,
  { id, work, share }: AdmissionRequest & { readonly share: TokenShare },
  now: number,
): Result<ShareState, Refusal> {
  const before = stateOf(state, tenant, share);
  const { allowance } = share;
  const taken = take(before, { id, work, allowance }, now);
  return taken.ok ? ok(withoutLeases(taken.value)) : no(refusalWithRetry(taken.refusal, before, allowance, now));
}

/** Books the seconds of a request that ended. */
export const bookShare = (state: ShareState, audioSeconds: number, now: number): ShareState =>
  withoutLeases(book({ ...freshAllowance, ...state }, audioSeconds, now));

/** Returns what is left for the token: the tighter of its own bounds and the tenant's. */
export function quotaOfShare(quota: Quota, state: ShareState | undefined, share: TokenShare, now: number): Quota {
  const own = quotaOf({ ...freshAllowance, ...state }, share.allowance, now);
  const tighter = (one: Figure, other: Figure) => (other.remaining < one.remaining ? other : one);
  return {
    requests: tighter(quota.requests, own.requests),
    audioSeconds: tighter(quota.audioSeconds, own.audioSeconds),
  };
}
