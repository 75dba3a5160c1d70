import { describe, expect, it } from 'vitest';
import type { DecodedWord } from '../../../../infra/pool/agent/asr/decode/decoder.ts';
import { dropRepeats } from '../../../../infra/pool/agent/asr/text/drop-repeats.ts';
import { createTextReader } from '../../../../infra/pool/agent/asr/text/text-reader.ts';
import { readTokenTexts, wordsOfTokens } from '../../../../infra/pool/agent/asr/text/token-texts.ts';
import { fp32Tensor, int32Tensor, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { textTensor } from '../../../fake/text-engine.ts';

const given = (...tensors: Tensor[]) => new Map(tensors.map((tensor) => [tensor.name, tensor]));
const floats = (name: string, ...values: number[]) => fp32Tensor(name, Float32Array.from(values), [1, values.length]);
const ids = (...values: number[]) => int32Tensor('TOKENS', Int32Array.from(values), [1, values.length]);

describe('U2 tokens of a text model', () => {
  it('become words by byte-level BPE, across characters of several bytes', () => {
    const texts = readTokenTexts(['ĠGr', 'Ã¼', 'ÃŁ', 'Ġ', 'Gott', '.', '<|endoftext|>'], 'bytes');
    expect(wordsOfTokens([0, 1, 2, 3, 4, 5, 6], texts)).toEqual([
      { word: 'Grüß', first: 0, last: 2 },
      { word: 'Gott.', first: 4, last: 5 },
    ]);
  });

  it('become words by SentencePiece', () => {
    const texts = readTokenTexts(['<blank>', '▁he', 'llo', '▁you'], 'pieces');
    expect(wordsOfTokens([0, 1, 2, 3], texts).map(({ word }) => word)).toEqual(['hello', 'you']);
  });

  it('become characters by the byte fallback of SentencePiece', () => {
    const texts = readTokenTexts(['<s>', '▁caf', '<0xC3>', '<0xA9>', '▁', '<0xE4>', '<0xB8>', '<0xAD>'], 'pieces');
    expect(wordsOfTokens([0, 1, 2, 3, 4, 5, 6, 7], texts)).toEqual([
      { word: 'café', first: 1, last: 3 },
      { word: '中', first: 5, last: 7 },
    ]);
  });

  it('become characters with the tokens that spell them where the script has no spaces', () => {
    const texts = readTokenTexts(['▁今天', '很', '<0xE5>', '<0xA5>', '<0xBD>', '。'], 'pieces');
    expect(wordsOfTokens([0, 1, 2, 3, 4, 5], texts)).toEqual([
      { word: '今', first: 0, last: 0 },
      { word: '天', first: 0, last: 0 },
      { word: '很', first: 1, last: 1 },
      { word: '好。', first: 2, last: 5 },
    ]);
  });

  it('carry times and confidence to their words', () => {
    const texts = readTokenTexts(['▁one', '▁two', '.', '<end>'], 'pieces');
    const reader = createTextReader(['TOKENS', 'TOKEN_TIMES', 'TOKEN_LOG_PROBS'], texts);
    const times = floats('TOKEN_TIMES', 0.1, 0.5, 0.8, 0.9);
    const read = reader.read(given(ids(0, 1, 2, 3), times, floats('TOKEN_LOG_PROBS', 0, -1, -3, 0)), 2);
    expect(read).toMatchObject({
      ok: true,
      value: {
        words: [
          { word: 'one', startFrame: 100, endFrame: 500, confidence: 1 },
          { word: 'two.', startFrame: 500, endFrame: 900, confidence: Math.exp(-2) },
        ],
        logProbability: expect.closeTo(-4 / 3, 6),
      },
    });
  });

  it('are delivered once when the decoder repeats them in no time', () => {
    const texts = readTokenTexts(['▁hold', '▁the', '▁connection', '<end>'], 'pieces');
    const times = floats('TOKEN_TIMES', 0.2, 0.5, 0.8, 1.2, 1.2, 1.2, 1.2);
    const read = createTextReader(['TOKENS', 'TOKEN_TIMES'], texts).read(given(ids(0, 1, 2, 0, 1, 2, 3), times), 3);
    expect(read.ok && read.value.words.map(({ word }) => word)).toEqual(['hold', 'the', 'connection']);
  });

  it('leave the last word time when the end of the text has none', () => {
    const reader = createTextReader(['TOKENS', 'TOKEN_TIMES'], readTokenTexts(['▁account', '<end>'], 'pieces'));
    const words = (seconds: number) => {
      const read = reader.read(given(ids(0, 1), floats('TOKEN_TIMES', 1, 1)), seconds);
      return read.ok && read.value.words.map(({ startFrame, endFrame }) => [startFrame, endFrame]);
    };
    expect([words(2), words(1.2)]).toEqual([[[1_000, 1_350]], [[1_000, 1_200]]]);
  });

  it('are refused outside of the vocabulary', () => {
    const reader = createTextReader(['TOKENS'], readTokenTexts(['a'], 'pieces'));
    expect(reader.read(given(ids(1)), 1)).toMatchObject({ refusal: { reason: 'engine_failed' } });
  });
});

describe('U2 text of a model', () => {
  it('gets times by its letters when the model has none', () => {
    const read = createTextReader(['TEXT']).read(given(textTensor('TEXT', ' Hi there ')), 0.9);
    expect(read.ok && read.value.words).toEqual([
      { word: 'Hi', startFrame: 0, endFrame: 300, confidence: 1 },
      { word: 'there', startFrame: 300, endFrame: 900, confidence: 1 },
    ]);
  });

  it.each([
    ['each character', floats('WORD_TIMES', 0, 0.2, 0.3, 0.5, 1, 1.5), [0, 300, 1_000]],
    ['a whole sentence', floats('WORD_TIMES', 0.4, 1, 1, 1.5), [400, 700, 1_000]],
  ])('U2: takes times of %s without spaces', (_, times, starts) => {
    const answer = given(textTensor('TEXT', '我们 ok'), times);
    const read = createTextReader(['TEXT', 'WORD_TIMES']).read(answer, 2);
    expect(read.ok && read.value.words.map(({ word }) => word)).toEqual(['我', '们', 'ok']);
    expect(read.ok && read.value.words.map(({ startFrame }) => startFrame)).toEqual(starts);
  });

  it('M9: keeps case and punctuation', () => {
    const read = createTextReader(['TEXT']).read(given(textTensor('TEXT', 'Well, Dr. Who?')), 2);
    expect(read.ok && read.value.words.map(({ word }) => word)).toEqual(['Well,', 'Dr.', 'Who?']);
  });

  it.each([
    ['without its output', given()],
    ['with too few times', given(textTensor('TEXT', 'one two'), floats('WORD_TIMES', 0, 1))],
  ])('is refused %s', (_, answer) => {
    const reader = createTextReader(['TEXT', 'WORD_TIMES']);
    expect(reader.read(answer, 1)).toMatchObject({ ok: false, refusal: { reason: 'engine_failed' } });
  });

  it.each([
    ['WORD_TIMES', given(textTensor('TEXT', 'one'), floats('WORD_TIMES', 0, Number.NaN))],
    ['WORD_TIMES', given(textTensor('TEXT', 'one'), floats('WORD_TIMES', 0, Number.POSITIVE_INFINITY))],
    ['WORD_CONFIDENCE', given(textTensor('TEXT', 'one'), floats('WORD_CONFIDENCE', Number.NaN))],
    ['TOKEN_TIMES', given(ids(0), floats('TOKEN_TIMES', Number.NaN))],
    ['TOKEN_LOG_PROBS', given(ids(0), floats('TOKEN_LOG_PROBS', Number.NEGATIVE_INFINITY))],
  ])('is refused when %s is not finite', (output, answer) => {
    const reader = createTextReader([output], output.startsWith('TOKEN') ? readTokenTexts(['a'], 'pieces') : undefined);
    const detail = `engine answer: ${output} not finite`;
    expect(reader.read(answer, 1)).toMatchObject({ ok: false, refusal: { reason: 'engine_failed', detail } });
  });
});

describe('U4 repetitions of a decoder', () => {
  const spoken = (text: string, ms = 300): DecodedWord[] =>
    text.split(' ').map((word, i) => ({ word, startFrame: ms * i, endFrame: ms * (i + 1), confidence: 1 }));
  const dropped = (text: string, ms?: number) => textOf(dropRepeats(spoken(text, ms), ms !== undefined));
  const textOf = (words: readonly DecodedWord[]) => words.map(({ word }) => word).join(' ');
  const times = (count: number, text: string) => Array(count).fill(text).join(' ');

  it.each([
    ['a sentence four times', `so ${times(4, 'thank you all for calling')}`, 'so thank you all for calling'],
    ['a word over and over', `yes ${times(20, 'so')}`, 'yes so'],
  ])('%s stays once without times', (_, text, left) => {
    expect(dropped(text)).toBe(left);
  });

  it.each([
    'no no no',
    'bye bye',
    'that is that is it',
    times(8, 'zero'),
    times(3, 'one two three'),
    times(8, 'four two'),
  ])('"%s" stays with times and without', (text) => {
    expect([dropped(text, 200), dropped(text)]).toEqual([text, text]);
  });

  it.each([
    ['a word', times(30, 'so'), 'so'],
    ['a phrase', times(9, 'thank you all'), 'thank you all'],
  ])('%s that fills its sound faster than speech stays once', (_, text, left) => {
    expect([dropped(text, 20), dropRepeats(spoken(text, 20), false).length]).toEqual([left, left.split(' ').length]);
  });

  it.each([
    ['hold the line', 2, 7, 2],
    // The first word of the loop begins where speech would.
    ['zero', 8, 40, 9],
  ])('"%s" spoken %i times before a loop stays', (phrase, count, loops, left) => {
    const real = spoken(times(count, phrase), 200);
    const end = real.at(-1)?.endFrame ?? 0;
    const looped = spoken(times(loops, phrase)).map((word) => ({ ...word, startFrame: end, endFrame: end }));
    expect(textOf(dropRepeats([...real, ...looped], true))).toBe(times(left, phrase));
  });

  it('a sentence that follows itself in no time stays once', () => {
    expect(dropped('please hold the line please hold the line', 20)).toBe('please hold the line');
  });
});
