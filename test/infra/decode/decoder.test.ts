import { describe, expect, it } from 'vitest';
import { createDecoder, type DecoderAssets } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import { createLanguageModel } from '../../../infra/pool/agent/asr/decode/language-model.ts';
import { align } from './align.ts';
import { arpa, plain, rows, spoken, sure, type Table, tokens } from './tables.ts';

function decode(assets: DecoderAssets, { table, frames }: Table) {
  const decoding = createDecoder(assets).begin();
  decoding.push(table, frames);
  return decoding.finish();
}

describe('A6 prefix beam search', () => {
  it('joins repeats, drops blanks, keeps double letters that a blank separates', () => {
    expect(decode(plain, sure('__cc_aa_t_')).text).toBe('cat');
    expect(decode(plain, sure('t_tt')).text).toBe('tt');
    expect(decode(plain, sure('cat   sat')).text).toBe('cat sat');
    expect(decode(plain, sure('  cat  ')).text).toBe('cat');
  });

  it('finds the likeliest text over all paths, where the best path is blank', () => {
    // Best single path: "__" (0.36). All paths that say "a": 0.24 + 0.24 + 0.16 = 0.64.
    expect(decode(plain, rows({ _: 0.6, a: 0.4 }, { _: 0.6, a: 0.4 })).text).toBe('a');
  });

  it('is the same however the sound is cut into pieces', () => {
    const { table, frames } = sure('__cc_aa_t  ss_a_t');
    const whole = decode(spoken, { table, frames });
    for (const piece of [1, 2, 5]) {
      const decoding = createDecoder(spoken).begin();
      for (let at = 0; at < frames; at += piece) {
        const count = Math.min(piece, frames - at);
        decoding.push(table.subarray(at * tokens.length, (at + count) * tokens.length), count);
      }
      expect(decoding.finish()).toEqual(whole);
    }
  });

  it('tells what it has so far', () => {
    const decoding = createDecoder(spoken).begin();
    const first = sure('c_a_t ');
    decoding.push(first.table, first.frames);
    expect(decoding.partial().text).toBe('cat');
    const second = sure('s_a_t');
    decoding.push(second.table, second.frames);
    expect(decoding.finish().text).toBe('cat sat');
  });

  it('says nothing for silence and for no frames', () => {
    expect(decode(spoken, sure('_____'))).toEqual({ text: '', words: [], confidence: 0 });
    expect(decode(spoken, { table: new Float32Array(0), frames: 0 }).text).toBe('');
  });
});

describe('A24 the language model helps on the CPU', () => {
  const unclear = rows(
    { c: 0.9 },
    { a: 0.9 },
    { t: 0.9 },
    { ' ': 0.9 },
    { s: 0.9 },
    { e: 0.6, a: 0.35 },
    { a: 0.8, _: 0.15 },
    { t: 0.9 },
  );

  it('prefers the word that follows more often when the sound allows both', () => {
    expect(decode(plain, unclear).text).toBe('cat seat');
    expect(decode(spoken, unclear).text).toBe('cat sat');
  });

  it('hears a clear word that the lexicon lacks', () => {
    const clear = rows(...[...'c_u_t_e'].map((letter) => ({ [letter]: 0.999_99 })));
    expect(decode(spoken, clear).text).toBe('cute');
  });

  it('backs off: known pair, unknown pair, unknown word', () => {
    const model = createLanguageModel(arpa);
    const begun = model.after(model.start, 'cat');
    expect(model.score(model.start, 'cat')).toBeCloseTo(-0.2 * Math.LN10, 9);
    expect(model.score(begun, 'sat')).toBeCloseTo(-0.1 * Math.LN10, 9);
    expect(model.score(begun, 'seat')).toBeCloseTo((-0.3 - 1.2) * Math.LN10, 9);
    expect(model.score(begun, 'zebra')).toBeCloseTo((-0.3 - 4) * Math.LN10, 9);
    expect(model.end(model.after(begun, 'sat'))).toBeCloseTo(-0.3 * Math.LN10, 9);
  });

  it('refuses a model with more words than its header counts', () => {
    const short = arpa.replace(/ngram 1=\d+/, 'ngram 1=1');
    expect(() => createLanguageModel(short)).toThrow('more keys');
  });
});

describe('R1 words carry times and confidence', () => {
  it('in frames, ordered, inside the sound', () => {
    const { words } = decode(spoken, sure('__cc_aa_t__  s_a_tt_'));
    expect(words.map(({ word, startFrame, endFrame }) => [word, startFrame, endFrame])).toEqual([
      ['cat', 2, 9],
      ['sat', 13, 19],
    ]);
    for (const { confidence } of words) expect(confidence).toBeGreaterThan(0.9);
  });

  it('a doubtful word is marked as one', () => {
    const { words } = decode(plain, rows({ c: 0.97 }, { a: 0.4, e: 0.3 }, { t: 0.97 }));
    expect(words[0]?.confidence).toBeLessThan(0.8);
  });

  it('aligning needs a frame for every token', () => {
    const { table } = sure('a');
    expect(align(table, 1, tokens.length, [2, 3], 0)).toBeUndefined();
    expect(align(table, 1, tokens.length, [2], 0)).toEqual([
      { firstFrame: 0, lastFrame: 0, logProb: expect.closeTo(Math.log(0.97), 4) },
    ]);
  });
});
