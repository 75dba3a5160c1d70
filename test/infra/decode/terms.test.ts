import { describe, expect, it } from 'vitest';
import { createDecoder, type DecoderAssets } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import type { Term } from '../../../shared/speech/terms.ts';
import { randomOf } from '../../fake/random.ts';
import { mumble, plain, rows, spoken, sure, type Table, tokens } from './tables.ts';

function decode({ table, frames }: Table, texts: readonly (string | Term)[] = [], assets: DecoderAssets = spoken) {
  const terms = texts.map((text) => (typeof text === 'string' ? { text } : text));
  const decoding = createDecoder(assets).begin(terms);
  decoding.push(table, frames);
  return decoding.finish();
}

/** "cute", which the lexicon lacks, with a doubt at each letter that leads to "cat". */
const cute = rows({ c: 0.9 }, { u: 0.75, a: 0.2 }, { t: 0.9 }, { e: 0.5, _: 0.45 }, { ' ': 0.9 });
const twice = rows(
  { c: 0.9 },
  { u: 0.75, a: 0.2 },
  { t: 0.9 },
  { e: 0.5, ' ': 0.45 },
  { s: 0.9 },
  { a: 0.9 },
  { t: 0.9 },
);

describe('U5 terms raise their words', () => {
  it('finds a word that the lexicon lacks', () => {
    expect(decode(cute).text).toBe('cat');
    expect(decode(cute, ['cute']).text).toBe('cute');
    expect(decode(cute, ['Cute!', 'seat']).text).toBe('cute');
  });

  it('takes a bonus back where the term breaks off', () => {
    for (const table of [cute, twice]) {
      expect(decode(table, ['cutest'])).toEqual(decode(table));
      expect(decode(table, ['cute seat'])).toEqual(decode(table));
    }
  });

  it('finds a phrase, and the shorter one of two that begin alike', () => {
    const phrase = rows(
      { c: 0.9 },
      { u: 0.75, a: 0.2 },
      { t: 0.9 },
      { e: 0.9 },
      { ' ': 0.9 },
      {
        t: 0.6,
        s: 0.35,
      },
      { a: 0.9 },
      { t: 0.9 },
    );
    expect(decode(phrase, ['cute tat', 'cute tat cat']).text).toBe('cute tat');
    expect(decode(phrase, ['cute']).text).toBe('cute sat');
  });

  it('counts the boost, and lowers a word with a negative one', () => {
    const unsure = rows({ s: 0.9 }, { e: 0.6, a: 0.35 }, { a: 0.8, _: 0.15 }, { t: 0.9 });
    expect(decode(unsure, [], plain).text).toBe('seat');
    expect(decode(unsure, [{ text: 'sat', boost: 0.1 }], plain).text).toBe('seat');
    expect(decode(unsure, [{ text: 'sat', boost: 3 }], plain).text).toBe('sat');
    expect(decode(unsure, [{ text: 'seat', boost: -3 }], plain).text).toBe('sat');
  });

  it('keeps the words behind a term with a high boost', () => {
    const table = mumble(['cat', 'seat', 'sat', 'cat', 'seat', 'sat'], 0.9, randomOf(5));
    const text = decode(table, []).text;
    expect(text.split(' ')).toHaveLength(6);
    for (const term of ['catess', 'catess seat']) {
      expect(decode(table, [{ text: term, boost: 10 }]).text).toBe(text);
    }
  });

  it('changes nothing by terms that cannot be spelled, or were not said', () => {
    for (const terms of [
      ['x', '42', '!'],
      ['taes', 'see', 'east'],
    ]) {
      expect(decode(sure('__cc_aa_t  ss_a_t'), terms)).toEqual(decode(sure('__cc_aa_t  ss_a_t')));
    }
  });

  it('A6 words called stable stay, however the sound is cut', () => {
    const terms = ['cute', 'cute cat', 'seat', 'ace'].map((text) => ({ text }));
    const random = randomOf(18);
    const decoder = createDecoder(spoken);
    for (let run = 0; run < 20; run++) {
      const { table, frames } = mumble(['cat', 'cute', 'cat', 'seat', 'sat'], 0.9, random);
      const once = decoder.begin(terms);
      once.push(table, frames);
      const final = once.finish();
      const decoding = decoder.begin(terms);
      for (let at = 0; at < frames; ) {
        const count = Math.min(1 + Math.floor(random() * 8), frames - at);
        decoding.push(table.subarray(at * tokens.length), count);
        at += count;
        const { words, stable } = decoding.partial();
        expect(words.slice(0, stable)).toEqual(final.words.slice(0, stable));
      }
      expect(decoding.finish()).toEqual(final);
    }
  });
});
