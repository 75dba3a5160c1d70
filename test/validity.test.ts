import { describe, expect, it } from 'vitest';
import { compare } from './bench/validity/compare.ts';
import { predict } from './bench/validity/predict.ts';
import { drawArrivals, MEAN_MS, type Scenario, scenarios } from './bench/validity/scenarios.ts';

const [steady, slow, overload] = scenarios as [Scenario, Scenario, Scenario];
const meanOf = (scenario: Scenario, callMs = 0) => {
  const arrivals = drawArrivals(scenario, 1);
  const predicted = [predict(scenario, arrivals, 1, callMs)];
  const rows = compare([{ arrivals, measured: predicted[0] ?? [], predicted }]);
  return (name: string) => rows.find((row) => row.class === name)?.predicted ?? { meanMs: Number.NaN, refused: 0 };
};

describe('C6 the scenarios of the validity bench', () => {
  it('draws equal requests for equal seeds, with the mean service time', () => {
    const arrivals = drawArrivals(steady, 1);
    expect(drawArrivals(steady, 1)).toEqual(arrivals);
    expect(drawArrivals(steady, 2)).not.toEqual(arrivals);
    const mean = arrivals.reduce((sum, { serviceMs }) => sum + serviceMs, 0) / arrivals.length;
    expect(Math.abs(mean / MEAN_MS - 1)).toBeLessThan(0.1);
  });

  it('predicts longer waits of batch work, under overload and with a slow pool', () => {
    const [usual, crowded] = [meanOf(steady), meanOf(overload)];
    expect(usual('batch').meanMs).toBeGreaterThan(usual('realtime').meanMs);
    expect(crowded('batch').meanMs).toBeGreaterThan(10 * crowded('realtime').meanMs);
    expect(usual('all').refused).toBe(0);
    expect(crowded('realtime').refused).toBeLessThan(crowded('batch').refused);
    const { slow: _, ...healthy } = slow;
    expect(meanOf(slow)('all').meanMs).toBeGreaterThan(meanOf(healthy)('all').meanMs);
    expect(meanOf(steady, 20)('all').meanMs).toBeGreaterThan(usual('all').meanMs);
  });

  it('compares served requests that count, by class', () => {
    const base = { tenant: 'a', serviceMs: 1 };
    const arrivals = [
      { ...base, atMs: 0, class: 'batch', counted: false },
      { ...base, atMs: 1, class: 'batch', counted: true },
      { ...base, atMs: 2, class: 'realtime', counted: true },
      { ...base, atMs: 3, class: 'realtime', counted: true },
    ] as const;
    const measured = [100, 30, 10, undefined];
    const rows = compare([{ arrivals, measured, predicted: [[100, 20, 10, 30]] }]);
    expect(rows.map((row) => [row.class, row.requests, row.predicted.meanMs, row.measured])).toEqual([
      ['all', 3, 20, { meanMs: 20, p90Ms: 30, refused: 1 - 2 / 3 }],
      ['realtime', 2, 20, { meanMs: 10, p90Ms: 10, refused: 0.5 }],
      ['batch', 1, 20, { meanMs: 30, p90Ms: 30, refused: 0 }],
    ]);
  });
});
