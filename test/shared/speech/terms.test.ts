import { describe, expect, it } from 'vitest';
import {
  biasOf,
  readKeywords,
  readTerms,
  TERM_CHARACTERS,
  TERMS_CHARACTERS,
  TERMS_MAX,
} from '../../../shared/speech/terms.ts';

const texts = (...list: string[]) => list.map((text) => ({ text }));

describe('U5 terms of a request', () => {
  it.each([
    ['snuffleupagus', { text: 'snuffleupagus' }],
    ['snuffleupagus:2.5', { text: 'snuffleupagus', boost: 2.5 }],
    ['um:-10.0', { text: 'um', boost: -10 }],
  ])('reads the keyword %s', (keyword, expected) => {
    expect(readKeywords([keyword])).toEqual({ ok: true, value: [expected] });
  });

  it.each(['um:-99', '10:30', 'a:b', 'a:Infinity', 'a:', 'a:10.5'])('refuses the boost of %s by name', (keyword) => {
    expect(readKeywords(['fine', keyword])).toMatchObject({ refusal: { params: { field: 'keywords' } } });
  });

  it.each([
    [texts('a', ' ', ''), [{ text: 'a' }]],
    [texts('x'.repeat(TERM_CHARACTERS + 1)), 'must be at most 64 characters a term'],
    [Array.from({ length: TERMS_MAX + 1 }, () => ({ text: 'x' })), 'must be at most 200 terms'],
    [
      Array.from({ length: TERMS_CHARACTERS / TERM_CHARACTERS + 1 }, () => ({ text: 'x'.repeat(TERM_CHARACTERS) })),
      'must be at most 4096 characters together',
    ],
  ])('refuses what is beyond the bounds by its rule: %#', (terms, expected) => {
    const read = readTerms('keyterm', terms);
    expect(read.ok ? read.value : read.refusal.params?.rule).toEqual(expected);
  });

  it('finds the short pieces of a prompt, within the bounds', () => {
    const prompt = 'Kowalski, New York Times;\nThis is a call about a broken router, Zyrtec.';
    expect(biasOf(prompt)).toEqual({ terms: texts('Kowalski', 'New York Times', 'Zyrtec'), prompt });
    const long = Array.from({ length: 300 }, (_, i) => `name ${i}`).join(',');
    expect(biasOf(long)?.terms).toHaveLength(TERMS_MAX);
    expect(biasOf(undefined, texts('one', 'two'))).toEqual({ terms: texts('one', 'two'), prompt: 'one, two' });
    expect(biasOf('')).toBeUndefined();
    expect(biasOf('北京大学、今天我们一起去公园散步，李明。')?.terms).toEqual(texts('北京大学', '李明'));
  });
});
