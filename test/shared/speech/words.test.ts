import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toCues } from '../../../shared/speech/cues.ts';
import { logprobsOf } from '../../../shared/speech/logprobs.ts';
import { joinWords, splitWord, wordsIn } from '../../../shared/speech/words.ts';

describe('M9 words of scripts without spaces', () => {
  it.each([
    ['今天天气很好。', ['今', '天', '天', '气', '很', '好。']],
    ['他说「你好」，走了', ['他', '说', '「你', '好」，', '走', '了']],
    ['コーヒーを飲む', ['コ', 'ー', 'ヒ', 'ー', 'を', '飲', 'む']],
    ['ที่นี่', ['ที่', 'นี่']],
    ['用iPhone打', ['用', 'iPhone', '打']],
    ['cold,', ['cold,']],
    ['한국어', ['한국어']],
  ])('%s is split into %j', (text, words) => {
    expect(splitWord(text)).toEqual(words);
  });

  it.each([
    [['今', '天'], '今天'],
    [['今', '天。', '好'], '今天。好'],
    [['他', '说', '“你', '好”'], '他说“你好”'],
    [['用', 'iPhone', '打'], '用 iPhone 打'],
    [['it', 'was', '', 'cold'], 'it was cold'],
    [['안녕', '하세요'], '안녕 하세요'],
    [['ก', 'า', '12'], 'กา 12'],
  ])('%j are joined to %s', (words, text) => {
    expect(joinWords(words)).toBe(text);
  });

  it('keeps every character of a text through splitting and joining', () => {
    const text = fc.array(fc.constantFrom(...'今天「」。ーのกี่(“”a1, é'), { maxLength: 20 }).map((all) => all.join(''));
    fc.assert(
      fc.property(text, (given) => {
        const bare = (one: string) => one.replace(/\s/g, '');
        expect(bare(joinWords(wordsIn(given)))).toBe(bare(given));
        expect(wordsIn(given).every((word) => word !== '' && !/\s/.test(word))).toBe(true);
      }),
    );
  });

  it('log probabilities join to the text', () => {
    const words = ['今', '天', 'ok', '好'].map((word) => ({ word, confidence: 1 }));
    expect(
      logprobsOf(words, '我')
        .map(({ token }) => token)
        .join(''),
    ).toBe('今天 ok 好');
  });

  it('subtitles have at most 16 full-width characters on a line', () => {
    const words = [...'今天天气很好我们一起去公园散步然后回家吃饭看书睡觉明天再见朋友'].map((word, i) => ({
      word,
      start: i / 5,
      end: (i + 1) / 5,
      confidence: 1,
    }));
    const text = joinWords(words.map(({ word }) => word));
    const segment = { index: 0, start: 0, end: 7, text, confidence: 1, logProbability: 0, words };
    const lines = toCues([{ type: 'segment', ...segment }]).flatMap((cue) => cue.text.split('\n'));
    expect(lines.join('')).toBe(text);
    expect(lines.every(({ length }) => length <= 16)).toBe(true);
    expect(lines).toHaveLength(2);
  });
});
