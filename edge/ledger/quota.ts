import { DAY_MS } from '../../shared/day.ts';
import { clampRetry, type Refusal } from '../../shared/refusal.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { AUDIO_PER_DAY_S, REQUESTS_CONCURRENT, REQUESTS_PER_MINUTE } from '../limits.ts';
import { type AllowanceState, advance, inUse, MINUTE_MS, placesOf, requestsOf, startsOf } from './allowance.ts';

/** One bound of an allowance, as a caller sees it. */
export interface Figure {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the whole limit is available again, if nothing more is used. */
  readonly resetMs: number;
}

/** The rest of an allowance. */
export interface Quota {
  /** Requests of the last 60 s. Those that isolates have leased in advance count as used. */
  readonly requests: Figure;
  /** Seconds of audio of the UTC day, as far as they are booked: requests in flight are booked when they end. */
  readonly audioSeconds: Figure;
}

const untilNextDay = (now: number): number => DAY_MS - (now % DAY_MS);

/** Returns what is left of the allowance at `now`. */
export function quotaOf(before: AllowanceState, allowance: Claims['allowance'], now: number): Quota {
  const state = advance(before, now);
  const perMinute = allowance.requestsPerMinute ?? REQUESTS_PER_MINUTE;
  const perDay = allowance.audioSecondsPerDay ?? AUDIO_PER_DAY_S;
  const newest = state.recent.at(-1)?.[0];
  return {
    requests: {
      limit: perMinute,
      remaining: Math.max(0, Math.floor(perMinute - requestsOf(state))),
      // Starts of reserves count as if they were used now.
      resetMs: startsOf(state) > 0 ? MINUTE_MS : newest === undefined ? 0 : newest + MINUTE_MS - now,
    },
    audioSeconds: {
      limit: perDay,
      remaining: Math.max(0, Math.floor(perDay - state.seconds)),
      resetMs: state.seconds > 0 ? untilNextDay(now) : 0,
    },
  };
}

/** Adds to a refusal of `take` the time until the request would be admitted: the longest of all bounds it exceeds. */
export function refusalWithRetry(
  refusal: Refusal,
  before: AllowanceState,
  allowance: Claims['allowance'],
  now: number,
): Refusal {
  const state = advance(before, now);
  const perMinute = allowance.requestsPerMinute ?? REQUESTS_PER_MINUTE;
  const atOnce = allowance.requestsAtOnce ?? REQUESTS_CONCURRENT;
  const perDay = allowance.audioSecondsPerDay ?? AUDIO_PER_DAY_S;
  const waits = [
    requestsOf(state) >= perMinute ? clampRetry(untilRequest(state, perMinute, now)) : 1,
    inUse(state) >= atOnce ? clampRetry(untilSlot(state, now)) : 1,
    // Known exactly, and longer than clients wait by themselves: `x-should-retry` says so.
    state.seconds >= perDay ? Math.ceil(untilNextDay(now) / 1_000) : 1,
  ];
  return { ...refusal, retryAfter: Math.max(...waits) };
}

/** Milliseconds until the last 60 s have capacity for a request, if nothing else begins or ends. */
function untilRequest(state: AllowanceState, perMinute: number, now: number): number {
  let counted = requestsOf(state);
  for (const [at, count] of state.recent) {
    counted -= count;
    if (counted < perMinute) return at + MINUTE_MS - now;
  }
  return MINUTE_MS;
}

/** Estimate of the milliseconds until a lease or a reserved slot is released. */
function untilSlot(state: AllowanceState, now: number): number {
  const { leases, reserves = {}, leaseMs = 0 } = state;
  const ends = Object.values(leases).map(({ since, until }) => Math.min(until, since + leaseMs));
  const spare = Object.entries(reserves).flatMap(([holder, { places, until }]) =>
    places > placesOf(state, holder) ? [until] : [],
  );
  return inUse(state) === 0 ? 0 : Math.max(0, Math.min(...ends, ...spare) - now);
}

/** The part of an allowance that an isolate has leased in advance. */
export interface LeasedQuota {
  /** Requests that it may still begin. */
  readonly starts: number;
  /** Seconds of audio that were left when the Gate last answered, less what the isolate has used since. */
  readonly seconds: number;
}

/** Returns the remaining quota of a request that used an isolate's reserve: the gate's last answer and the reserve. */
export function leasedQuota({ requests, audioSeconds }: Quota, { starts, seconds }: LeasedQuota, now: number): Quota {
  return {
    requests: {
      limit: requests.limit,
      remaining: Math.min(requests.limit, requests.remaining + starts),
      resetMs: MINUTE_MS,
    },
    audioSeconds: {
      limit: audioSeconds.limit,
      remaining: Math.max(0, Math.floor(seconds)),
      resetMs: seconds < audioSeconds.limit ? untilNextDay(now) : 0,
    },
  };
}
