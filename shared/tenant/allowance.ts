import { limits } from '../limits.ts';
import { type Refusal, refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import type { Claims } from './claims.ts';

/** What a tenant used, as far as the next decision needs it. Plain data: the gate writes it down as one row. */
export interface AllowanceState {
  /** Requests of the current and of the previous calendar minute. */
  readonly minute: number;
  readonly count: number;
  readonly before: number;
  /** Seconds of audio on the current UTC day. */
  readonly day: number;
  readonly seconds: number;
  /** By request id. */
  readonly leases: Readonly<Record<string, Lease>>;
}

/** What a place is taken for, as far as the record must tell it should nobody else do so. */
export interface Work {
  readonly tenant: string;
  readonly action: string;
}

interface Lease extends Work {
  /** When the place comes back by itself, ms since 1970, should its holder vanish. */
  readonly until: number;
}

export interface Ask {
  readonly id: string;
  readonly work: Work;
  readonly allowance: Claims['allowance'];
}

export const freshAllowance: AllowanceState = { minute: 0, count: 0, before: 0, day: 0, seconds: 0, leases: {} };

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * Takes a place for one request. Asking again with an id that already holds a place changes nothing, so a caller that
 * did not hear the answer may repeat the question.
 *
 * Requests are counted over a sliding minute (this minute, and the part of the last one that still overlaps), which
 * admits no double burst where two minutes meet. Seconds of audio are known only afterwards: the day is closed once
 * they are used up, and may overshoot by what was in flight.
 */
export function take(
  state: AllowanceState,
  { id, work, allowance }: Ask,
  now: number,
): Result<AllowanceState, Refusal> {
  const current = advance(state, now);
  if (Object.hasOwn(current.leases, id)) return ok(current);

  const perMinute = allowance.requestsPerMinute ?? limits.requestsPerMinute.value;
  const overlap = 1 - (now % MINUTE_MS) / MINUTE_MS;
  if (current.count + current.before * overlap >= perMinute) {
    return no(refuse('allowance_requests', { limit: perMinute }));
  }
  const atOnce = allowance.requestsAtOnce ?? limits.requestsAtOnce.value;
  if (Object.keys(current.leases).length >= atOnce) return no(refuse('allowance_concurrent', { limit: atOnce }));

  const perDay = allowance.audioSecondsPerDay ?? limits.audioSecondsPerDay.value;
  if (current.seconds >= perDay) return no(refuse('allowance_seconds', { limit: perDay }));

  return ok({
    ...current,
    count: current.count + 1,
    leases: { ...current.leases, [id]: { ...work, until: now + limits.leaseMs.value } },
  });
}

/** Gives back the places whose holders vanished, and tells which those were. The same state when there are none. */
export function expire(
  state: AllowanceState,
  now: number,
): { state: AllowanceState; lost: readonly (Work & { id: string })[] } {
  const lost = Object.entries(state.leases).filter(([, { until }]) => until <= now);
  if (lost.length === 0) return { state, lost: [] };
  return { state: advance(state, now), lost: lost.map(([id, { tenant, action }]) => ({ id, tenant, action })) };
}

/** When the next place comes back by itself, ms since 1970. */
export function nextExpiry({ leases }: AllowanceState): number | undefined {
  const times = Object.values(leases).map(({ until }) => until);
  return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
}

/** Keeps a place for work that lasts longer than a lease. A place that was already lost stays lost. */
export function renew(state: AllowanceState, id: string, now: number): AllowanceState {
  const current = advance(state, now);
  const lease = current.leases[id];
  if (!lease || !Object.hasOwn(current.leases, id)) return current;
  return { ...current, leases: { ...current.leases, [id]: { ...lease, until: now + limits.leaseMs.value } } };
}

/** Gives the place back and books the seconds of audio that were heard. Settling twice books once. */
export function settle(state: AllowanceState, id: string, audioSeconds: number, now: number): AllowanceState {
  const current = advance(state, now);
  if (!Object.hasOwn(current.leases, id)) return current;
  const { [id]: _, ...leases } = current.leases;
  return { ...current, leases, seconds: current.seconds + Math.max(0, audioSeconds) };
}

/** The state as of `now`: counters of past minutes and days closed, expired places given back. */
function advance(state: AllowanceState, now: number): AllowanceState {
  const minute = Math.floor(now / MINUTE_MS);
  const day = Math.floor(now / DAY_MS);
  const leases = Object.fromEntries(Object.entries(state.leases).filter(([, { until }]) => until > now));
  const sameMinute = state.minute === minute;
  return {
    minute,
    count: sameMinute ? state.count : 0,
    before: sameMinute ? state.before : state.minute === minute - 1 ? state.count : 0,
    day,
    seconds: state.day === day ? state.seconds : 0,
    leases,
  };
}
