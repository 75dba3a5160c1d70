import { describe, expect, it } from 'vitest';
import { median, middle, ratioFigures } from './bench/median.ts';

describe('the summary of several rounds of a benchmark', () => {
  it.each([
    [[3], 3],
    [[9, 1], 5],
    [[9, 1, 2], 2],
    [[4, 10, 1, 2], 3],
    [[10, 9, 100], 10],
  ])('the median of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it('the median of nothing is no number', () => {
    expect(median([])).toBeNaN();
  });

  it('takes all of a row from one round: that of the median', () => {
    const rounds = [
      { cpu: 30, perSecond: 33 },
      { cpu: 10, perSecond: 100 },
      { cpu: 20, perSecond: 50 },
    ];
    expect(middle(rounds, ({ cpu }) => cpu)).toBe(rounds[2]);
    expect(middle(rounds.slice(0, 2), ({ cpu }) => cpu)).toBe(rounds[1]);
    expect(() => middle([], Number)).toThrow('no round');
  });

  it('a ratio has its lowest and highest round, and is absent without measurements', () => {
    expect(ratioFigures('ratio', [0.5, 0.3, 0.4])).toEqual({ ratio: 0.4, ratio_low: 0.3, ratio_high: 0.5 });
    expect(ratioFigures('ratio', [])).toEqual({});
  });
});
