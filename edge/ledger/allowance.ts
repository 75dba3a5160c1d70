import { DAY_MS } from '../../shared/day.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims, TokenShare } from '../../shared/tenant/claims.ts';
import { AUDIO_PER_DAY_S, REQUESTS_CONCURRENT, REQUESTS_PER_MINUTE } from '../limits.ts';

/** Lifetime of a lease that is not renewed; longer than a request may take to name its model. */
export const LEASE_MS = 120_000;

/** The usage of a tenant. Plain data: the Gate writes it as one row. */
export interface AllowanceState {
  /** Starts of the last 60 s, oldest first. */
  readonly recent: readonly Starts[];
  /** Seconds of audio on the current UTC day. */
  readonly day: number;
  readonly seconds: number;
  /** By request id. */
  readonly leases: Readonly<Record<string, Lease>>;
  /** Quota that isolates have leased in advance, by holder. */
  readonly reserves?: Readonly<Record<string, Reserve>>;
  /** Mean time a request keeps its lease, ms; absent until one has ended. */
  readonly leaseMs?: number;
}

/** Starts within one second: time of the newest, ms since 1970, and their number. All expire with the newest. */
export type Starts = readonly [at: number, count: number];

/** Tenant and action of a request, for the record of a lease that expires. */
export interface Work {
  readonly tenant: string;
  readonly action: string;
}

export interface Lease extends Work {
  /** Expiry of the lease, ms since 1970, unless it is renewed. */
  readonly until: number;
  /** Start of the lease, ms since 1970. */
  readonly since: number;
  /** Holder of the reserve that the slot belongs to, while that reserve exists. */
  readonly holder?: string;
  /** The token with its own allowance, under which the slot counts as well. */
  readonly share?: string;
}

export interface AdmissionRequest {
  readonly id: string;
  readonly work: Work;
  readonly allowance: Claims['allowance'];
  /** Absent: the token has no allowance of its own. */
  readonly share?: TokenShare | undefined;
}

export const freshAllowance: AllowanceState = { recent: [], day: 0, seconds: 0, leases: {} };

export const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;

/**
 * Leases a slot for one request. Repeating it with an id that has a lease changes nothing, so a caller without an answer may
 * repeat the call.
 *
 * No window of 60 s has more starts than the limit: a start counts for 60 s, and for up to 1 s more when later ones of
 * its second follow. Seconds of audio are known only afterwards: the day is closed once they are used up, and may
 * overshoot by what was in flight.
 */
export function take(
  state: AllowanceState,
  { id, work, allowance, share }: AdmissionRequest,
  now: number,
): Result<AllowanceState, Refusal> {
  const current = advance(state, now);
  if (Object.hasOwn(current.leases, id)) return ok(current);

  const perDay = allowance.audioSecondsPerDay ?? AUDIO_PER_DAY_S;
  if (current.seconds >= perDay) return no(refuse('allowance_seconds', { limit: perDay }));

  const perMinute = allowance.requestsPerMinute ?? REQUESTS_PER_MINUTE;
  if (requestsOf(current) >= perMinute) return no(refuse('allowance_requests', { limit: perMinute }));

  const atOnce = allowance.requestsAtOnce ?? REQUESTS_CONCURRENT;
  if (inUse(current) >= atOnce) return no(refuse('allowance_concurrent', { limit: atOnce }));

  const lease = { ...work, until: now + LEASE_MS, since: now, ...(share && { share: share.id }) };
  return ok({ ...addStarts(current, 1, now), leases: { ...current.leases, [id]: lease } });
}

/** Releases expired leases and returns them. The same state when there are none. */
export function expire(
  state: AllowanceState,
  now: number,
): { state: AllowanceState; lost: readonly (Work & { id: string })[] } {
  const lost = Object.entries(state.leases).filter(([, { until }]) => until <= now);
  if (lost.length === 0) return { state, lost: [] };
  return { state: advance(state, now), lost: lost.map(([id, { tenant, action }]) => ({ id, tenant, action })) };
}

/** Open requests of one reserve. */
export const placesOf = ({ leases }: AllowanceState, holder: string): number =>
  Object.values(leases).reduce((sum, lease) => sum + (lease.holder === holder ? 1 : 0), 0);

/** Slots in use: single ones, and those of reserves, used or not. */
export function inUse(state: AllowanceState): number {
  const { leases, reserves = {} } = state;
  const single = Object.values(leases).reduce(
    (sum, { holder }) => sum + (holder !== undefined && reserves[holder] ? 0 : 1),
    0,
  );
  return Object.entries(reserves).reduce(
    (sum, [holder, { places }]) => sum + Math.max(places, placesOf(state, holder)),
    single,
  );
}

/** Unused starts of the reserves. */
export const startsOf = ({ reserves = {} }: AllowanceState): number =>
  Object.values(reserves).reduce((sum, { starts }) => sum + starts, 0);

/** Starts of the last 60 s and unused ones of reserves, of a state that `advance` returned. */
export const requestsOf = (state: AllowanceState): number =>
  state.recent.reduce((sum, [, count]) => sum + count, startsOf(state));

/** Counts starts at `now`, in a state that `advance` returned. */
export function addStarts(state: AllowanceState, count: number, now: number): AllowanceState {
  if (count <= 0) return state;
  const { recent = [] } = state;
  const last = recent.at(-1);
  if (!last || Math.floor(last[0] / SECOND_MS) !== Math.floor(now / SECOND_MS)) {
    return { ...state, recent: [...recent, [now, count]] };
  }
  return { ...state, recent: [...recent.slice(0, -1), [now, last[1] + count]] };
}

/** Returns the earliest expiry of a lease, ms since 1970. */
export function nextExpiry({ leases }: AllowanceState): number | undefined {
  const times = Object.values(leases).map(({ until }) => until);
  return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
}

/** Extends the lease of running work. An expired lease stays expired. */
export function renew(state: AllowanceState, id: string, now: number): AllowanceState {
  const current = advance(state, now);
  const lease = current.leases[id];
  if (!lease || !Object.hasOwn(current.leases, id)) return current;
  return { ...current, leases: { ...current.leases, [id]: { ...lease, until: now + LEASE_MS } } };
}

/** Releases the lease and books the seconds of audio. Settling twice books once. */
export function settle(state: AllowanceState, id: string, audioSeconds: number, now: number): AllowanceState {
  const current = advance(state, now);
  if (!Object.hasOwn(current.leases, id)) return current;
  const { [id]: ended, ...leases } = current.leases;
  return {
    ...current,
    leases,
    seconds: current.seconds + Math.max(0, audioSeconds),
    ...leaseTime(current, ended, now),
  };
}

/** Weight of the newest lease in the mean time of all. */
const SMOOTHING = 0.2;

/** The mean time of leases after one has ended. */
export function leaseTime({ leaseMs }: AllowanceState, ended: Lease | undefined, now: number): { leaseMs?: number } {
  if (ended?.since === undefined) return leaseMs === undefined ? {} : { leaseMs };
  const lasted = Math.max(0, now - ended.since);
  return { leaseMs: leaseMs === undefined ? lasted : leaseMs + SMOOTHING * (lasted - leaseMs) };
}

/** Books seconds of audio of work without a lease, an upload. */
export function book(state: AllowanceState, audioSeconds: number, now: number): AllowanceState {
  const current = advance(state, now);
  return { ...current, seconds: current.seconds + Math.max(0, audioSeconds) };
}

/** The state as of `now`: starts of over 60 s ago dropped, past days closed, expired leases and reserves released. */
export function advance(state: AllowanceState, now: number): AllowanceState {
  const day = Math.floor(now / DAY_MS);
  const { reserves = {}, recent } = state;
  const gone = Object.values(reserves).filter(({ until }) => until <= now);
  const expired = Object.values(state.leases).some(({ until }) => until <= now);
  const isCurrent = recent.every(([at]) => at > now - MINUTE_MS && at <= now);
  if (isCurrent && state.day === day && !expired && gone.length === 0) return state;
  // A clock that stepped back leaves starts in the future: they count for 60 s from now.
  const left = recent.filter(([at]) => at > now - MINUTE_MS).map(([at, count]): Starts => [Math.min(at, now), count]);
  const next: AllowanceState = {
    recent: left,
    day,
    seconds: state.day === day ? state.seconds : 0,
    leases: Object.fromEntries(Object.entries(state.leases).filter(([, { until }]) => until > now)),
    ...(state.leaseMs !== undefined && { leaseMs: state.leaseMs }),
    ...(state.reserves && { reserves: withoutExpired(reserves, now) }),
  };
  // A lost isolate may have used the starts of its reserve.
  return addStarts(
    next,
    gone.reduce((sum, { starts }) => sum + starts, 0),
    now,
  );
}

/** Removes expired reserves. The sequence number of each stays for a while. */
function withoutExpired(reserves: Readonly<Record<string, Reserve>>, now: number): Record<string, Reserve> {
  return Object.fromEntries(
    Object.entries(reserves).flatMap(([holder, reserve]): [string, Reserve][] => {
      if (reserve.until > now) return [[holder, reserve]];
      if (reserve.gone) return [];
      const until = now + LEASE_MS;
      return [[holder, { places: 0, starts: 0, seq: reserve.seq, until, gone: true }]];
    }),
  );
}
/** Slots and starts: every request of a minute is a start, a running one has a slot. */
export interface Amount {
  readonly places: number;
  readonly starts: number;
}

/**
 * Slots and starts that an isolate has leased in advance, so that it begins requests without a call. All of it counts as used
 * until the isolate reports otherwise or the reserve expires.
 */
export interface Reserve extends Amount {
  readonly seq: number;
  /** Expiry, ms since 1970. Its starts then count as spent. */
  readonly until: number;
  /** Returned: the number stays, so that a repeated report changes nothing. */
  readonly gone?: true;
}
