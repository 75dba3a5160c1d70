import type { Claims } from '../../shared/tenant/claims.ts';
import { AUDIO_PER_DAY_S, REQUESTS_CONCURRENT, REQUESTS_PER_MINUTE } from '../limits.ts';
import {
  type AllowanceState,
  type Amount,
  addStarts,
  advance,
  inUse,
  LEASE_MS,
  type Lease,
  leaseTime,
  placesOf,
  requestsOf,
  startsOf,
  type Work,
} from './allowance.ts';

/** Share of an allowance that all isolates together may lease without using it; one isolate at most half of that. */
const RESERVE_SHARE = 0.25;
/** Lifetime of a reserve: an isolate with a request every five seconds never waits for the Gate. */
export const RESERVE_MS = 5_000;
/** Time the Gate counts a reserve beyond its end: reports of last-moment requests have arrived by then. */
export const RESERVE_GRACE_MS = 2_000;

/** Usage of an isolate since its last report, and the reserve that it requests. */
export interface Report {
  /** Random; a new one after a report without an answer. */
  readonly holder: string;
  /** 1, 2, …; a repeated report changes nothing. */
  readonly seq: number;
  /** Part of its reserve that it uses before the answer, slots in use included. */
  readonly keep: Amount;
  /** Slots and starts that it requests beside `keep`. */
  readonly want: Amount;
  /** Starts that were used. */
  readonly spent: number;
  /** Requests that began and have not ended. */
  readonly began: readonly (Work & { readonly id: string })[];
  /** Requests of earlier reports that have ended. */
  readonly ended: readonly string[];
  /** Seconds of audio of the requests that ended. */
  readonly audioSeconds: number;
}

/** The reserve of the isolate from its report on; undefined for a repeated report. */
export type ReserveLease = Given | undefined;

interface Given extends Amount {
  /** Seconds of audio that the tenant has left today: once they are used up, nothing may begin. */
  readonly seconds: number;
}

export interface Reported {
  readonly state: AllowanceState;
  readonly grant: ReserveLease;
}

/**
 * Applies a report and decides the reserve of its sender. The sender retains what it keeps, and gets at most half of the
 * unleased quota. All reserves together have at most `RESERVE_SHARE` of the allowance idle: the rest is for requests that
 * lease a slot of their own.
 */
export function report(state: AllowanceState, usage: Report, allowance: Claims['allowance'], now: number): Reported {
  const { holder, seq } = usage;
  const current = advance(state, now);
  const known = current.reserves?.[holder];
  if (known && seq <= known.seq) return { state: current, grant: undefined };

  const leases: Record<string, Lease> = { ...current.leases };
  for (const { id, tenant, action } of usage.began) {
    leases[id] = { tenant, action, until: now + LEASE_MS, since: now, holder };
  }
  let times: { leaseMs?: number } = {};
  for (const id of usage.ended) {
    times = leaseTime({ ...current, ...times }, leases[id], now);
    delete leases[id];
  }
  const { [holder]: _, ...others } = current.reserves ?? {};
  const next: AllowanceState = {
    ...addStarts(current, usage.spent, now),
    seconds: current.seconds + Math.max(0, usage.audioSeconds),
    leases,
    reserves: others,
    ...times,
  };
  const { places, starts } = decide(next, usage, known, allowance);
  const until = now + RESERVE_MS + RESERVE_GRACE_MS;
  const reserves = { ...others, [holder]: { places, starts, seq, until } };
  const perDay = allowance.audioSecondsPerDay ?? AUDIO_PER_DAY_S;
  return { state: { ...next, reserves }, grant: { places, starts, seconds: perDay - next.seconds } };
}

function decide(
  state: AllowanceState,
  { keep, want, holder }: Report,
  known: Amount | undefined,
  allowance: Claims['allowance'],
): Amount {
  const atOnce = allowance.requestsAtOnce ?? REQUESTS_CONCURRENT;
  const perMinute = allowance.requestsPerMinute ?? REQUESTS_PER_MINUTE;
  const open = placesOf(state, holder);
  const places = Math.max(open, Math.min(keep.places, known?.places ?? 0));
  const starts = Math.min(keep.starts, known?.starts ?? 0);
  const all = { ...state, reserves: { ...state.reserves, [holder]: { places, starts, seq: 0, until: 0 } } };
  const spare = Object.entries(all.reserves).reduce(
    (sum, [one, held]) => sum + Math.max(0, held.places - placesOf(all, one)),
    0,
  );
  const morePlaces = share(want.places, atOnce, atOnce - inUse(all), spare);
  const moreStarts = share(want.starts, perMinute, perMinute - requestsOf(all), startsOf(all));
  // One without the other is good for nothing.
  if (places + morePlaces <= open || starts + moreStarts < 1) return { places: open, starts: 0 };
  return { places: places + morePlaces, starts: starts + moreStarts };
}

/** Returns the quota that may still be leased in advance: `free` is unleased, `spare` is leased but idle. */
function share(want: number, allowance: number, free: number, spare: number): number {
  const most = Math.floor(allowance * RESERVE_SHARE);
  return Math.max(0, Math.min(want, Math.floor(most / 2), Math.floor(free / 2), most - spare));
}
