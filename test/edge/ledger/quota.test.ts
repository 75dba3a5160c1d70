import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AllowanceState, freshAllowance, settle, take } from '../../../edge/ledger/allowance.ts';
import { leasedQuota, quotaOf, refusalWithRetry } from '../../../edge/ledger/quota.ts';
import { report } from '../../../edge/ledger/reserve.ts';
import { RETRY_AFTER_MAX_S } from '../../../shared/refusal.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const T0 = 20_000 * DAY;
const work = { tenant: 't', action: 'transcribe' };
const ask = (id: string, allowance: object) => ({ id, work, allowance });

const taken = (state: AllowanceState, id: string, now: number, allowance = {}): AllowanceState => {
  const result = take(state, ask(id, allowance), now);
  if (!result.ok) throw new Error(result.refusal.reason);
  return result.value;
};
const served = (state: AllowanceState, id: string, now: number, allowance = {}) =>
  settle(taken(state, id, now, allowance), id, 0, now);

function retryAfter(state: AllowanceState, allowance: object, now: number): number {
  const refused = take(state, ask('next', allowance), now);
  if (refused.ok) throw new Error('not refused');
  return refusalWithRetry(refused.refusal, state, allowance, now).retryAfter ?? Number.NaN;
}

describe('U11 C6 retry-after is the time until the request is admitted', () => {
  it('requests of a minute: admitted after that time, refused a second before', () => {
    const times = fc.array(fc.integer({ min: 0, max: 2 * MINUTE - 1 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(times, fc.integer({ min: 1, max: 20 }), (list, requestsPerMinute) => {
        const allowance = { requestsPerMinute };
        let state = freshAllowance;
        const sorted = list.map((at) => T0 + at).sort((a, b) => a - b);
        for (const [index, at] of sorted.entries()) {
          const result = take(state, ask(`r${index}`, allowance), at);
          if (result.ok) {
            state = settle(result.value, `r${index}`, 0, at);
            continue;
          }
          const seconds = retryAfter(state, allowance, at);
          const { resetMs } = quotaOf(state, allowance, at).requests;
          expect(resetMs <= MINUTE && seconds <= Math.ceil(resetMs / 1_000)).toBe(true);
          expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= RETRY_AFTER_MAX_S).toBe(true);
          expect(take(state, ask('next', allowance), at + seconds * 1_000).ok).toBe(true);
          if (seconds > 1) expect(take(state, ask('next', allowance), at + (seconds - 1) * 1_000).ok).toBe(false);
        }
      }),
    );
  });

  it('concurrent requests: mean lease time minus the age of the oldest', () => {
    const allowance = { requestsAtOnce: 2 };
    let state = settle(taken(freshAllowance, 'before', T0), 'before', 1, T0 + 10_000);
    state = taken(state, 'one', T0 + 20_000, allowance);
    state = taken(state, 'two', T0 + 26_000, allowance);
    expect(retryAfter(state, allowance, T0 + 27_000)).toBe(3);
    // A request beyond the usual duration may end at any moment.
    expect(retryAfter(state, allowance, T0 + 60_000)).toBe(1);
  });

  it('concurrent requests: unused slots of an isolate return with its reserve', () => {
    const allowance = { requestsAtOnce: 8 };
    const told = { holder: 'a', seq: 1, spent: 0, began: [], ended: [], audioSeconds: 0 };
    const keep = { places: 0, starts: 0 };
    let { state } = report(freshAllowance, { ...told, keep, want: { places: 4, starts: 8 } }, allowance, T0);
    for (let n = 0; n < 7; n += 1) state = taken(state, `r${n}`, T0 + 1_000, allowance);
    state = { ...state, leaseMs: 100_000 };
    expect(retryAfter(state, allowance, T0 + 1_000)).toBe(6);
  });

  it('seconds of audio: until the day ends', () => {
    const state = settle(taken(freshAllowance, 'a', T0), 'a', 100, T0);
    expect(retryAfter(state, { audioSecondsPerDay: 100 }, T0 + DAY - 90_500)).toBe(91);
  });

  it.each([
    [90_500, 'allowance_seconds', 91],
    [5_500, 'allowance_seconds', 60],
  ])('two bounds at %i ms before midnight: the longer wait', (before, reason, seconds) => {
    const allowance = { requestsPerMinute: 1, audioSecondsPerDay: 100 };
    const now = T0 + DAY - before;
    const state = settle(taken(freshAllowance, 'a', now, allowance), 'a', 100, now);
    const refused = take(state, ask('next', allowance), now);
    expect(refused).toMatchObject({ ok: false, refusal: { reason } });
    expect(retryAfter(state, allowance, now)).toBe(seconds);
  });
});

describe('U11 remaining allowance', () => {
  const allowance = { requestsPerMinute: 10, audioSecondsPerDay: 1_000 };

  it('counts requests of the sliding minute and booked seconds', () => {
    let state = freshAllowance;
    for (let n = 0; n < 4; n += 1) state = served(state, `r${n}`, T0 + 30_000, allowance);
    state = settle(taken(state, 'long', T0 + 30_000, allowance), 'long', 12.5, T0 + 40_000);
    expect(quotaOf(state, allowance, T0 + 40_000)).toEqual({
      requests: { limit: 10, remaining: 5, resetMs: 50_000 },
      audioSeconds: { limit: 1_000, remaining: 987, resetMs: DAY - 40_000 },
    });
    expect(quotaOf(state, allowance, T0 + 89_999).requests).toEqual({ limit: 10, remaining: 5, resetMs: 1 });
    expect(quotaOf(state, allowance, T0 + 90_000).requests).toEqual({ limit: 10, remaining: 10, resetMs: 0 });
    expect(quotaOf(state, allowance, T0 + 2 * MINUTE).requests).toEqual({ limit: 10, remaining: 10, resetMs: 0 });
  });

  it('is never more than the gate admits, isolates together', () => {
    const amounts = fc.array(fc.record({ holder: fc.constantFrom('a', 'b', 'c'), want: fc.nat(20) }), { maxLength: 8 });
    fc.assert(
      fc.property(amounts, fc.integer({ min: 8, max: 200 }), (reports, requestsPerMinute) => {
        const limited = { requestsPerMinute, requestsAtOnce: 1_000 };
        let state = freshAllowance;
        for (const [index, { holder, want }] of reports.entries()) {
          const told = { holder, seq: index + 1, spent: 0, began: [], ended: [], audioSeconds: 0 };
          const asked = { ...told, keep: { places: 0, starts: 0 }, want: { places: want, starts: want } };
          state = report(state, asked, limited, T0).state;
        }
        const quota = quotaOf(state, limited, T0);
        const held = Object.values(state.reserves ?? {}).map(({ starts }) => starts);
        const seen = held.map((starts) => leasedQuota(quota, { starts, seconds: 1 }, T0).requests.remaining);
        for (const remaining of seen) expect(remaining).toBeLessThanOrEqual(requestsPerMinute);
        expect(quota.requests.remaining + held.reduce((sum, one) => sum + one, 0)).toBe(requestsPerMinute);
      }),
    );
  });
});
