import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import type { Reason, Refusal } from '../../shared/refusal.ts';
import type { Claims, RequestClass } from '../../shared/tenant/claims.ts';
import { candidatesFor, refusalAhead } from '../routing/constraints.ts';
import { agentsHaveReconnected } from '../routing/have-reconnected.ts';
import type { RouteRequest } from '../routing/route.ts';
import { SUITE } from '../routing/setups.ts';

/** Session whose stream an agent has to serve. */
export interface StreamRoute {
  /** Unique name; decides which revision the session begins with. */
  readonly session: string;
  /** Revision that the session has begun with. */
  readonly revision?: string | undefined;
  readonly model: string;
  readonly language?: string | undefined;
  /** Family of the model, while an agent is to detect the language. */
  readonly family?: string | undefined;
}

/** Refusals after which another agent, or the same one later, may serve the stream. */
const retryable: ReadonlySet<Reason> = new Set([
  'pool_lost',
  'pool_busy',
  'no_pool',
  'misdirected',
  'seal_broken',
  'attestation_invalid',
  'ticket_invalid',
  'ticket_replayed',
  'engine_failed',
  'deadline_passed',
  'storage_full',
  'internal',
]);

/** Reports whether another agent may serve a stream that an agent refused. */
export const mayFailOver = ({ reason }: Refusal): boolean => retryable.has(reason);

/** Reports whether a session that no agent takes now may find one in a moment. */
export const isTransient = ({ reason }: Refusal): boolean => reason === 'no_pool';

/** Returns the request to pick an agent for a session. */
export function routeRequest(route: StreamRoute, claims: Claims, priority: RequestClass): RouteRequest {
  const { session, model, language, family, revision } = route;
  const detects = family === undefined ? undefined : true;
  const { tenant, languages: allowed, zones } = claims;
  const kind = { task: 'transcribe', live: true, realtime: true } as const;
  return {
    ...kind,
    tenant,
    session,
    model,
    language,
    detects,
    revision,
    allowed,
    zones,
    suite: SUITE,
    class: priority,
  };
}

/** Rosters of the edge's zones, as one isolate read them. */
export interface Rosters {
  readonly zones: readonly string[];
  readonly snapshots: readonly Snapshot[];
}

/** Reports whether the rosters know all agents that serve a token: those that lost a roster have called it again. */
export const isComplete = ({ zones, snapshots }: Rosters, claims: Claims, now: number): boolean =>
  agentsHaveReconnected(
    zones.filter((zone) => claims.zones.includes(zone)),
    snapshots,
    now,
  );

/**
 * Returns the refusal of a session that no agent can serve, as far as the rosters know: `no_pool` only when all agents
 * are away for certain.
 */
export function refuseUnservable(
  route: StreamRoute,
  claims: Claims,
  rosters: Rosters,
  now: number,
): Refusal | undefined {
  const request = routeRequest(route, claims, claims.priority);
  const never = refusalAhead(request, rosters.snapshots, now);
  if (never || !isComplete(rosters, claims, now)) return never;
  const found = candidatesFor(request, rosters.snapshots, now);
  return found.ok ? undefined : found.refusal;
}
