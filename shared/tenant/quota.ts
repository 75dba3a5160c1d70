import { limits } from '../limits.ts';
import { clampRetry, type Refusal } from '../refusal.ts';
import { type AllowanceState, advance, inUse, placesOf, requestsOf, startsOf } from './allowance.ts';
import type { Claims } from './claims.ts';

/** One bound of an allowance, as a caller sees it. */
export interface Figure {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until all of the limit is there again, if nothing more is used. */
  readonly resetMs: number;
}

/** What is left of an allowance. */
export interface Quota {
  /** Requests of the sliding minute. Those that isolates hold in advance count as used. */
  readonly requests: Figure;
  /** Seconds of audio of the UTC day, as far as they are booked: requests in flight are booked when they end. */
  readonly audioSeconds: Figure;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const untilNext = (now: number, period: number): number => period - (now % period);

/** What is left of the allowance at `now`. */
export function quotaOf(before: AllowanceState, allowance: Claims['allowance'], now: number): Quota {
  const state = advance(before, now);
  const perMinute = allowance.requestsPerMinute ?? limits.requestsPerMinute.value;
  const perDay = allowance.audioSecondsPerDay ?? limits.audioSecondsPerDay.value;
  // Starts held in advance are counted in the minute in which they come back.
  const counted = state.count + startsOf(state);
  const minute = untilNext(now, MINUTE_MS);
  return {
    requests: {
      limit: perMinute,
      remaining: Math.max(0, Math.floor(perMinute - requestsOf(state, now))),
      resetMs: counted > 0 ? minute + MINUTE_MS : state.before > 0 ? minute : 0,
    },
    audioSeconds: {
      limit: perDay,
      remaining: Math.max(0, Math.floor(perDay - state.seconds)),
      resetMs: state.seconds > 0 ? untilNext(now, DAY_MS) : 0,
    },
  };
}

/** The refusal of an allowance with the time until it would have been granted. */
export function refusalWithRetry(
  refusal: Refusal,
  before: AllowanceState,
  allowance: Claims['allowance'],
  now: number,
): Refusal {
  const state = advance(before, now);
  switch (refusal.reason) {
    case 'allowance_requests': {
      const perMinute = allowance.requestsPerMinute ?? limits.requestsPerMinute.value;
      return { ...refusal, retryAfter: clampRetry(untilRequest(state, perMinute, now)) };
    }
    case 'allowance_concurrent':
      return { ...refusal, retryAfter: clampRetry(untilSlot(state, now)) };
    case 'allowance_seconds':
      // Known exactly, and longer than clients wait by themselves: `x-should-retry` says so.
      return { ...refusal, retryAfter: Math.ceil(untilNext(now, DAY_MS) / 1_000) };
    default:
      return refusal;
  }
}

/** Milliseconds until the sliding minute has room for a request, if nothing else begins or is given back. */
function untilRequest(state: AllowanceState, perMinute: number, now: number): number {
  const counted = state.count + startsOf(state);
  const rest = untilNext(now, MINUTE_MS);
  if (counted < perMinute) {
    // The previous minute still weighs too much: its weight goes down to 0 by the end of this one.
    const weight = (perMinute - counted) / Math.max(state.before, 1);
    return Math.max(1, rest - weight * MINUTE_MS + 1);
  }
  return rest + MINUTE_MS * (1 - perMinute / counted) + 1;
}

/** Estimate of the milliseconds until a lease or a place held in advance comes back. */
function untilSlot(state: AllowanceState, now: number): number {
  const { leases, reserves = {}, leaseMs = 0 } = state;
  const ends = Object.values(leases).map(({ since = now, until }) => Math.min(until, since + leaseMs));
  const spare = Object.entries(reserves).flatMap(([holder, { places, until }]) =>
    places > placesOf(state, holder) ? [until] : [],
  );
  return inUse(state) === 0 ? 0 : Math.max(0, Math.min(...ends, ...spare) - now);
}

/** What an isolate holds of an allowance in advance. */
export interface HeldInAdvance {
  /** Requests that it may still begin. */
  readonly starts: number;
  /** Seconds of audio that were left when the gate last answered, less what the isolate has heard since. */
  readonly seconds: number;
}

/** What is left for a request that an isolate began by itself: the gate's last answer, and what the isolate still holds. */
export function quotaHeld({ requests, audioSeconds }: Quota, { starts, seconds }: HeldInAdvance, now: number): Quota {
  return {
    requests: {
      limit: requests.limit,
      remaining: Math.min(requests.limit, requests.remaining + starts),
      resetMs: untilNext(now, MINUTE_MS) + MINUTE_MS,
    },
    audioSeconds: {
      limit: audioSeconds.limit,
      remaining: Math.max(0, Math.floor(seconds)),
      resetMs: seconds < audioSeconds.limit ? untilNext(now, DAY_MS) : 0,
    },
  };
}
