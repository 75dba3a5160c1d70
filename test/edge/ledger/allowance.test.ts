import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AllowanceState,
  expire,
  freshAllowance,
  LEASE_MS,
  nextExpiry,
  renew,
  settle,
  take,
} from '../../../edge/ledger/allowance.ts';
import { REQUESTS_CONCURRENT } from '../../../edge/limits.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const work = { tenant: 't', action: 'transcribe' };
/** The start of a minute and of a day. */
const T0 = 20_000 * DAY;

const must = (state: AllowanceState, id: string, now: number, allowance = {}): AllowanceState => {
  const taken = take(state, { id, work, allowance }, now);
  if (!taken.ok) throw new Error(taken.refusal.reason);
  return taken.value;
};
const reason = (state: AllowanceState, now: number, allowance: object, id = 'next') => {
  const taken = take(state, { id, work, allowance }, now);
  return taken.ok ? 'ok' : taken.refusal.reason;
};

describe('C4 C6 the allowance', () => {
  it('N requests in 60 s refuse the next one', () => {
    const allowance = { requestsPerMinute: 6 };
    let state = freshAllowance;
    for (let n = 0; n < 6; n += 1) {
      const now = T0 + 59_000 + n * 100;
      state = settle(must(state, `r${n}`, now, allowance), `r${n}`, 0, now);
    }
    // Regression: the weighted count of two calendar minutes was 5.9 here, and admitted a seventh.
    expect(reason(state, T0 + MINUTE + 1_000, allowance)).toBe('allowance_requests');
    expect(reason(state, T0 + MINUTE + 59_499, allowance)).toBe('allowance_requests');
    expect(reason(state, T0 + MINUTE + 59_500, allowance)).toBe('ok');
  });

  it('admits at most N starts in 60 s, and N in 61 s', () => {
    const gaps = fc.array(fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 30_000 })), { minLength: 20, maxLength: 300 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.nat({ max: DAY }), gaps, (requestsPerMinute, from, list) => {
        const allowance = { requestsPerMinute };
        const admitted: number[] = [];
        const since = (at: number) => admitted.filter((one) => one > at).length;
        let [state, now] = [freshAllowance, T0 + from];
        for (const gap of list) {
          now += gap;
          const taken = take(state, { id: `${now}`, work, allowance }, now);
          if (!taken.ok) {
            expect(since(now - 61_000)).toBeGreaterThanOrEqual(requestsPerMinute);
            continue;
          }
          state = settle(taken.value, `${now}`, 0, now);
          admitted.push(now);
          expect(since(now - MINUTE)).toBeLessThanOrEqual(requestsPerMinute);
        }
      }),
    );
  });

  it('keeps at most 61 counters however many requests begin', () => {
    let state = freshAllowance;
    for (let n = 0; n < 6_000; n += 1) {
      const now = T0 + n * 30;
      state = settle(must(state, `r${n}`, now, { requestsPerMinute: 10_000 }), `r${n}`, 0, now);
      expect(state.recent.length).toBeLessThanOrEqual(61);
    }
  });

  it('leases return when settled, or by expiry after a crash', () => {
    const allowance = { requestsAtOnce: 1 };
    const state = must(freshAllowance, 'one', T0, allowance);
    expect(reason(state, T0 + 1, allowance)).toBe('allowance_concurrent');
    expect(reason(settle(state, 'one', 0, T0 + 1), T0 + 1, allowance)).toBe('ok');
    expect(reason(state, T0 + LEASE_MS - 1, allowance)).toBe('allowance_concurrent');
    expect(reason(state, T0 + LEASE_MS, allowance)).toBe('ok');
  });

  it('a place that is renewed stays', () => {
    const allowance = { requestsAtOnce: 1 };
    const state = renew(must(freshAllowance, 'one', T0, allowance), 'one', T0 + LEASE_MS - 1);
    expect(reason(state, T0 + LEASE_MS + 1, allowance)).toBe('allowance_concurrent');
    expect(renew(freshAllowance, 'gone', T0).leases).toEqual({});
  });

  it('asking again with the same id takes nothing more', () => {
    const allowance = { requestsPerMinute: 1, requestsAtOnce: 1 };
    const state = must(freshAllowance, 'one', T0, allowance);
    expect(must(state, 'one', T0 + 1, allowance)).toMatchObject({
      recent: [[T0, 1]],
      leases: { one: { until: expect.any(Number) } },
    });
  });

  it('seconds of a UTC day, booked once', () => {
    const allowance = { audioSecondsPerDay: 100 };
    let state = must(freshAllowance, 'one', T0, allowance);
    state = settle(state, 'one', 99, T0);
    state = settle(state, 'one', 99, T0);
    state = settle(must(state, 'two', T0, allowance), 'two', 1, T0);
    expect(reason(state, T0 + DAY - 1, allowance)).toBe('allowance_seconds');
    expect(reason(state, T0 + DAY, allowance)).toBe('ok');
  });

  it('a negative duration gives nothing back', () => {
    const state = settle(must(freshAllowance, 'one', T0), 'one', -50, T0);
    expect(state.seconds).toBe(0);
  });

  it('a token without limits gets the defaults, and sees them', () => {
    let state = freshAllowance;
    for (let n = 0; n < REQUESTS_CONCURRENT; n += 1) state = must(state, `r${n}`, T0);
    const taken = take(state, { id: 'more', work, allowance: {} }, T0);
    expect(taken).toMatchObject({ refusal: { params: { limit: REQUESTS_CONCURRENT } } });
  });

  it('expired leases are reported once, renewed ones are not', () => {
    const lease = LEASE_MS;
    let state = must(must(freshAllowance, 'one', T0), 'two', T0 + 1);
    expect(nextExpiry(freshAllowance)).toBeUndefined();
    expect(nextExpiry(state)).toBe(T0 + lease);
    expect(expire(state, T0 + lease - 1)).toEqual({ state, lost: [] });
    state = renew(state, 'two', T0 + 2);
    const { state: after, lost } = expire(state, T0 + lease + 1);
    expect(lost).toEqual([{ id: 'one', ...work }]);
    expect(Object.keys(after.leases)).toEqual(['two']);
    expect(expire(after, T0 + lease + 1).lost).toEqual([]);
    expect(settle(after, 'one', 100, T0 + lease + 1).seconds).toBe(0);
  });

  it('a clock that steps back neither throws nor opens the gate', () => {
    const allowance = { requestsAtOnce: 1 };
    const state = must(freshAllowance, 'one', T0 + DAY, allowance);
    expect(reason(state, T0, allowance)).toBe('allowance_concurrent');
    const used = settle(must(freshAllowance, 'one', T0 + DAY), 'one', 0, T0 + DAY);
    expect(reason(used, T0, { requestsPerMinute: 1 })).toBe('allowance_requests');
  });
});
