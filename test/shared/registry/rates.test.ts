// Error rates of the rates judge over simulated rollouts, under repeated looks.
import { describe, expect, it } from 'vitest';
import { evaluateRates, logHarm, logSafe } from '../../../shared/registry/rates.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import { runs } from '../../seeds.ts';
import { least, most } from './chance.ts';
import { judgeOne } from './rollouts.ts';

const SEED = 20_261_122;
const N = runs(200, 1_000);

function repeat(rate: number, ratio: number, times: number, n: number) {
  const ended = Array.from({ length: n }, (_, at) => judgeOne(seeded(SEED + at), rate, ratio, times));
  const share = (verdict: string) => ended.filter((one) => one.verdict === verdict).length;
  const streams = ended.map((one) => one.streams).sort((one, other) => one - other);
  return { fail: share('FAIL'), pass: share('PASS'), median: streams[n >> 1] as number };
}

describe('C7, A15: rates of bad streams (seeds from 20261122)', () => {
  // Per row: true ratio; shares of FAIL and PASS and the median of canary streams in the published simulation
  // of this judge, 600 rollouts each.
  type Row = readonly [ratio: number, fails: number, passes: number, median: number];
  const tables: readonly (readonly [name: string, rate: number, times: number, rows: readonly Row[]])[] = [
    [
      '5 % of streams are bad',
      0.05,
      1,
      [
        [0.8, 0, 1, 293],
        [1, 0.01, 0.99, 732],
        [1.25, 0.48, 0.52, 1_961],
        [1.5, 0.967, 0.033, 937],
        [2, 0.997, 0.003, 241],
        [3, 1, 0, 72],
      ],
    ],
    [
      '1 % of streams are bad',
      0.01,
      4,
      [
        [0.8, 0, 1, 1_643],
        [1, 0.022, 0.975, 3_671],
        [1.5, 0.955, 0.043, 4_811],
        [3, 1, 0, 333],
      ],
    ],
  ];

  for (const [name, rate, times, rows] of tables) {
    it.each([...rows])(`${name}: %f times as many`, (ratio, fails, passes, median) => {
      const n = rate === 0.05 ? N : Math.ceil(N / 4);
      const found = repeat(rate, ratio, times, n);
      expect(found.fail, 'failed').toBeGreaterThanOrEqual(least(fails, n) - 0.05 * n);
      expect(found.fail, 'failed').toBeLessThanOrEqual(most(fails, n) + 0.05 * n);
      expect(found.pass, 'passed').toBeGreaterThanOrEqual(least(passes, n) - 0.05 * n);
      expect(found.pass, 'passed').toBeLessThanOrEqual(most(passes, n) + 0.05 * n);
      expect(found.median / median).toBeGreaterThan(0.6);
      expect(found.median / median).toBeLessThan(1.6);
      // The promises themselves.
      if (ratio <= 1) expect(found.fail).toBeLessThanOrEqual(most(0.02, n));
      if (ratio >= 1.5) expect(found.pass).toBeLessThanOrEqual(most(0.05, n));
    });
  }

  it('no bad streams give no verdict', () => {
    expect(evaluateRates([], 0.02, 0.05)).toBe('INCONCLUSIVE');
    expect([logHarm([]), logSafe([])]).toEqual([0, 0]);
  });

  it('stable’s bad streams favour the canary, its own oppose it', () => {
    const at = (canary: number, stable: number) => [{ share: 0.25 as const, canary, stable }];
    expect(evaluateRates(at(0, 60), 0.02, 0.05)).toBe('PASS');
    expect(evaluateRates(at(60, 60), 0.02, 0.05)).toBe('FAIL');
    expect(evaluateRates(at(1, 3), 0.02, 0.05)).toBe('INCONCLUSIVE');
  });
});
