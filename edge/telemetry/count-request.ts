import type { Refusal } from '../../shared/refusal.ts';
import type { RequestContext } from '../context.ts';
import { homeZone } from '../home-zone.ts';
import type { RequestFacts } from './meter.ts';

/** Owner of an allowance. */
interface Owner {
  readonly tenant: string;
  readonly zones: readonly string[];
}

type Facts = Omit<RequestFacts, 'zone' | 'tenant' | 'quota'>;

/** Counts a request that ended; `owner` is absent for an unknown caller. */
export function countRequest(context: RequestContext, owner: Owner | undefined, facts: Facts): void {
  context.counted = true;
  const zone = homeZone(owner ?? { zones: [] }, context.settings.zones);
  context.telemetry?.count({ ...facts, zone, tenant: owner?.tenant, quota: context.quota });
}

/** Counts a request that was refused before its session. */
export const countDenial = (
  context: RequestContext,
  owner: Owner | undefined,
  action: string,
  { reason }: Refusal,
): void => countRequest(context, owner, { action, outcome: reason });
