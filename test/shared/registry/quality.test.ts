// Error rates of the quality judge over generated sets of 100 speakers with 20 utterances each.
import { describe, expect, it } from 'vitest';
import { evaluateQuality, qualityRule, type SpeakerErrors } from '../../../shared/registry/quality.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import { countWordErrors } from '../../../shared/registry/word-errors.ts';
import { runs } from '../../seeds.ts';
import { generateSet } from './generated-set.ts';

const SEED = 3_141;
const N = runs(60, 1_000);
const TABLE = runs(60, 200);

function shares(speakers: number, utterances: number, worse: number, tail: number, n = N) {
  const rule = { ...qualityRule, tail, speakers, utterances };
  const all = Array.from({ length: n }, (_, at) => {
    const set = generateSet(seeded(SEED + at), { speakers, utterances, rate: 0.08, worse });
    return evaluateQuality(set, SEED + at, rule).verdict;
  });
  return (verdict: string) => all.filter((one) => one === verdict).length / n;
}

describe('C7, A15: word errors, 100 speakers of 20 utterances, margin 10 % (seeds from 3141)', () => {
  const slack = 4.9 * Math.sqrt((0.05 * 0.95) / N);

  it.each([
    // Relative increase of errors; pass rate in the published simulation of this gate at a tail of 5 %.
    [0, 0.91],
    [0.05, 0.45],
    [0.1, 0.1],
  ])('the table: %f worse passes in %f', (worse, passes) => {
    const near = 4.9 * Math.sqrt((passes * (1 - passes)) / TABLE) + 0.08;
    expect(Math.abs(shares(100, 20, worse, 0.05, TABLE)('PASS') - passes)).toBeLessThan(near);
  });

  it('a tenth worse passes in at most 5 % (tail 2.5 %)', () => {
    expect(shares(100, 20, 0.1, qualityRule.tail)('PASS')).toBeLessThanOrEqual(0.05 + slack);
  });

  it('an equal one fails in at most 1 %, passes in over 70 %', () => {
    const of = shares(100, 20, 0, qualityRule.tail);
    expect(of('FAIL')).toBeLessThanOrEqual(0.01 + slack);
    expect(of('PASS')).toBeGreaterThan(0.7);
  });

  it('one a quarter worse fails in over 80 %, and never passes', () => {
    const of = shares(100, 20, 0.25, qualityRule.tail);
    expect(of('FAIL')).toBeGreaterThan(0.8);
    expect(of('PASS')).toBe(0);
  });
});

describe('C7: requirements on a set', () => {
  const good = (speakers: number, utterances: number): SpeakerErrors[] =>
    Array.from({ length: speakers }, () => ({ utterances, words: 300, before: 24, after: 20 }));

  it.each([
    [100, 20, 'PASS'],
    [99, 20, 'INCONCLUSIVE'],
    [100, 19, 'INCONCLUSIVE'],
    [0, 20, 'INCONCLUSIVE'],
  ])('%i speakers of %i utterances: %s', (speakers, utterances, verdict) => {
    expect(evaluateQuality(good(speakers, utterances), 1).verdict).toBe(verdict);
  });

  it('one without errors may make a few', () => {
    const few = good(100, 20).map((one, at) => ({ ...one, before: 0, after: at % 10 === 0 ? 1 : 0 }));
    expect(evaluateQuality(few, 1).verdict).toBe('PASS');
    const many = few.map((one) => ({ ...one, after: 6 }));
    expect(evaluateQuality(many, 1).verdict).toBe('FAIL');
  });

  it('the seed reproduces the result', () => {
    const set = generateSet(seeded(5), { speakers: 100, utterances: 20, rate: 0.08, worse: 0.05 });
    expect(evaluateQuality(set, 7)).toEqual(evaluateQuality(set, 7));
    expect(evaluateQuality(set, 7).high).not.toBe(evaluateQuality(set, 8).high);
  });
});

it.each([
  ['a b c', 'a b c', 0],
  ['a b c', 'a x c', 1],
  ['a b c', 'b c', 1],
  ['', 'a b', 2],
  ['a b c d', 'x a c', 3],
])('C7: %j recognised as %j: %i errors', (said, heard, errors) => {
  const words = (text: string) => text.split(' ').filter(Boolean);
  expect(countWordErrors(words(said), words(heard))).toBe(errors);
});
