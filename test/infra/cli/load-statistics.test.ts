import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Outcome, percentile, summarize } from '../../../infra/cli/load/statistics.ts';

const served = (milliseconds: number): Outcome => ({ milliseconds, code: undefined, audioSeconds: 2 });
const failed = (code: string): Outcome => ({ milliseconds: 1, code, audioSeconds: 0 });

describe('R13: the summary of a load run', () => {
  it('counts served requests and errors by code, per second of wall time', () => {
    const outcomes = [served(10), served(30), failed('pool_busy'), failed('pool_busy'), failed('ECONNRESET')];
    expect(summarize(outcomes, 500)).toMatchObject({
      requests: 5,
      served: 2,
      errors: { pool_busy: 2, ECONNRESET: 1 },
      wallSeconds: 0.5,
      perSecond: 4,
      audioSeconds: 4,
      audioSecondsPerSecond: 8,
    });
  });

  it('leaves the time of a refusal out of the latencies', () => {
    const { latency } = summarize([served(40), failed('pool_busy')], 100);
    expect(latency).toEqual({ p50: 40, p90: 40, p95: 40, p99: 40, max: 40, mean: 40 });
  });

  it('has no latency when nothing was served', () => {
    expect(summarize([failed('no_pool')], 100).latency).toBeUndefined();
    expect(summarize([], 0)).toMatchObject({ requests: 0, perSecond: 0, audioSecondsPerSecond: 0 });
  });

  it('takes percentiles by nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, at) => at + 1);
    expect([0.5, 0.9, 0.95, 0.99, 1].map((share) => percentile(hundred, share))).toEqual([50, 90, 95, 99, 100]);
    expect([0, 0.5, 0.51].map((share) => percentile([1, 2], share))).toEqual([1, 1, 2]);
  });

  it('gives percentiles that were measured, in order, and covered by their share', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10_000), { minLength: 1 }), fc.nat(10_000), (times, wall) => {
        const { latency } = summarize(times.map(served), wall);
        if (!latency) throw new Error('no latency');
        const { p50, p90, p95, p99, max } = latency;
        const order = [p50, p90, p95, p99, max];
        expect(order).toEqual([...order].sort((one, other) => one - other));
        for (const [value, share] of [
          [p50, 0.5],
          [p99, 0.99],
        ] as const) {
          expect(times).toContain(value);
          expect(times.filter((time) => time <= value).length).toBeGreaterThanOrEqual(share * times.length);
        }
      }),
    );
  });
});
