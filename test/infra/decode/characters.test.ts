import { describe, expect, it } from 'vitest';
import { createDecoder, type DecodedSoFar, type DecoderAssets } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import type { Term } from '../../../shared/speech/terms.ts';

/** A vocabulary of characters without a boundary. */
const tokens = ['<blank>', '今', '天', '气', '汽', '好', '。', 'a', 'i', 'ก', '่'];
const WIDTH = tokens.length;
const characters: DecoderAssets = { tokens, blank: 0 };

/** Log probabilities: each frame names its tokens and their shares, `_` being blank. */
function table(...frames: Record<string, number>[]): Float32Array {
  return Float32Array.from(
    frames.flatMap((frame) => tokens.map((token, at) => Math.log(frame[at === 0 ? '_' : token] ?? 1e-6))),
  );
}

/** A clear token in each frame. */
const sure = (text: string) => table(...[...text].map((token) => ({ [token]: 0.97 })));

function decode(rows: Float32Array, assets = characters, terms: readonly Term[] = []) {
  const decoding = createDecoder(assets).begin(terms);
  const looks: DecodedSoFar[] = [];
  for (let at = 0; at < rows.length; at += WIDTH) {
    decoding.push(rows.subarray(at, at + WIDTH), 1);
    looks.push(decoding.partial());
  }
  return { ...decoding.finish(), looks };
}

const arpa = `\\data\\
ngram 1=7
ngram 2=2

\\1-grams:
-99\t<s>\t-0.3
-1.0\t</s>
-4.0\t<unk>
-1.0\t今\t-0.3
-1.0\t天\t-0.3
-1.0\t气\t-0.3
-2.0\t汽\t-0.3

\\2-grams:
-0.1\t今 天
-0.1\t天 气

\\end\\
`;

describe('M6 a vocabulary of characters without a word boundary', () => {
  it('yields a word with times for each character', () => {
    const { text, words } = decode(sure('今今_天__气。'));
    expect(text).toBe('今天气。');
    expect(words.map(({ word, startFrame, endFrame }) => [word, startFrame, endFrame])).toEqual([
      ['今', 0, 2],
      ['天', 3, 4],
      ['气。', 6, 8],
    ]);
  });

  it('keeps a character that is spoken twice, and parts letters from characters', () => {
    expect(decode(sure('天_天aai好')).words.map(({ word }) => word)).toEqual(['天', '天', 'ai', '好']);
    expect(decode(sure('ก่ก')).words.map(({ word }) => word)).toEqual(['ก่', 'ก']);
  });

  it('makes characters stable while the utterance goes on', () => {
    const { looks } = decode(sure('今天天气_好_今_天'));
    expect(looks.at(-1)).toMatchObject({ text: '今天气好今天', stable: 4, whole: 6 });
    expect(looks.every(({ words, whole }) => whole === words.length)).toBe(true);
  });

  it('weighs characters by a language model over characters, and adds none without', () => {
    const rows = table({ 今: 0.9 }, { 天: 0.9 }, { 汽: 0.5, 气: 0.45 }, { _: 0.7, 好: 0.25 });
    expect(decode(rows).text).toBe('今天汽');
    expect(decode(rows, { ...characters, languageModel: arpa }).text).toBe('今天气');
  });

  it('U5: raises a term of characters, in front of others too', () => {
    const rows = table({ 今: 0.9 }, { 天: 0.9 }, { 汽: 0.6, 气: 0.3 }, { 好: 0.9 });
    expect(decode(rows, characters, [{ text: '天气' }]).text).toBe('今天气好');
    expect(decode(rows, characters, [{ text: '天 气!' }]).text).toBe('今天气好');
    expect(decode(rows, characters, [{ text: '天气今' }]).text).toBe('今天汽好');
    expect(decode(rows, { ...characters, languageModel: arpa }, [{ text: '汽好' }]).text).toBe('今天汽好');
  });

  it('decodes noise over thousands of characters in bounded work', () => {
    const many = ['<blank>', ...Array.from({ length: 5_000 }, (_, i) => String.fromCodePoint(0x4e00 + i))];
    const decoding = createDecoder({ tokens: many, blank: 0 }).begin();
    decoding.push(new Float32Array(10 * many.length).fill(Math.log(1 / many.length)), 10);
    expect(decoding.finish().words.length).toBeLessThanOrEqual(10);
  });
});
