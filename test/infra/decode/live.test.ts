import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBeam, type DecodedToken } from '../../../infra/pool/agent/asr/decode/beam.ts';
import {
  createDecoder,
  type Decoded,
  type DecodedSoFar,
  type DecoderAssets,
  defaults,
} from '../../../infra/pool/agent/asr/decode/decoder.ts';
import { createLanguageModel } from '../../../infra/pool/agent/asr/decode/language-model.ts';
import { createLexicon } from '../../../infra/pool/agent/asr/decode/lexicon.ts';
import { randomOf } from '../../fake/random.ts';
import { runs } from '../../seeds.ts';
import { decodeExhaustively } from './exhaustive.ts';
import { arpa, mumble, plain, rows, spoken, sure, type Table, tokens } from './tables.ts';

const WIDTH = tokens.length;
const lexicon = spoken.lexicon ?? [];

/** Decodes in pieces of the given lengths, again and again until the sound is over; a look at every stop. */
function listen(assets: DecoderAssets, { table, frames }: Table, pieces: readonly number[]) {
  const decoding = createDecoder(assets).begin();
  const looks: DecodedSoFar[] = [];
  for (let at = 0, turn = 0; at < frames; turn++) {
    const count = Math.min(pieces[turn % pieces.length] ?? 1, frames - at);
    decoding.push(table.subarray(at * WIDTH, (at + count) * WIDTH), count);
    looks.push(decoding.partial());
    at += count;
  }
  return { looks, final: decoding.finish() };
}

/** Expects that stable words never change from one look to the next. */
function expectSettled(looks: readonly DecodedSoFar[], final: Decoded) {
  let before = 0;
  for (const { words, stable, text, confidence } of looks) {
    expect(stable).toBeGreaterThanOrEqual(before);
    before = stable;
    expect(words.slice(0, stable)).toEqual(final.words.slice(0, stable));
    expect(text).toBe(words.map(({ word }) => word).join(' '));
    const sum = words.reduce((total, word) => total + word.confidence, 0);
    expect(confidence).toBe(words.length > 0 ? sum / words.length : 0);
    words.forEach(({ startFrame, endFrame }, at) => {
      expect(startFrame).toBeGreaterThanOrEqual(words[at - 1]?.endFrame ?? 0);
      expect(endFrame).toBeGreaterThan(startFrame);
    });
  }
}

const utterance = (longest: number, how?: { rest: number; often: number }) =>
  fc
    .record({
      words: fc.array(fc.constantFrom(...lexicon, 'cute', 'e', 'tt'), { minLength: 1, maxLength: longest }),
      doubt: fc.double({ min: 0, max: 0.98, noNaN: true }),
      seed: fc.nat(),
    })
    .map(({ words, doubt, seed }) => mumble(words, doubt, randomOf(seed), how));
const pieces = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 });
const assets = fc.constantFrom(plain, spoken, { ...plain, lexicon });

describe('A6 prefix beam search hears an utterance live', () => {
  it('stable words are final with times and confidence, however the sound is cut', () => {
    let settled = 0;
    fc.assert(
      fc.property(assets, utterance(8), pieces, (given, table, cuts) => {
        const { looks, final } = listen(given, table, cuts);
        expectSettled(looks, final);
        expect(final).toEqual(listen(given, table, [table.frames]).final);
        settled += looks.at(-1)?.stable ?? 0;
      }),
      { numRuns: runs(200, 800), seed: 6 },
    );
    expect(settled).toBeGreaterThan(runs(200, 800) / 2);
  }, 60_000);

  it('finds the likeliest text over all paths or the next, with its times', () => {
    const behind: number[] = [];
    fc.assert(
      fc.property(assets, utterance(3, { rest: 1e-5, often: 0.4 }), (given, table) => {
        fc.pre(table.frames <= 18);
        const { final } = listen(given, table, [table.frames]);
        const readings = decodeExhaustively(table.table, table.frames, given);
        const found = readings.find(({ text }) => text === final.text);
        behind.push((readings[0]?.score ?? 0) - (found?.score ?? Number.NEGATIVE_INFINITY));
        const close = (confidence: number) => expect.closeTo(confidence, 12) as number;
        expect(final.words).toEqual(found?.words().map((word) => ({ ...word, confidence: close(word.confidence) })));
      }),
      { numRuns: runs(60, 400), seed: 24 },
    );
    // Hypotheses that differ in what no longer matters compete before all of their paths are in.
    expect(Math.max(...behind)).toBeLessThan(1);
    expect(behind.filter((gap) => gap > 1e-6).length).toBeLessThan(behind.length / 25);
  }, 60_000);

  it('a word is stable once ended without rivals, and whole once ended', () => {
    const decoding = createDecoder(spoken).begin();
    const hear = (letters: string) => {
      const { table, frames } = rows(...[...letters].map((letter) => ({ [letter]: 0.999_99 })));
      decoding.push(table, frames);
      const { text, stable, whole } = decoding.partial();
      return { text, stable, whole };
    };
    expect(hear('__c_a')).toEqual({ text: 'ca', stable: 0, whole: 0 });
    expect(hear('_t_')).toEqual({ text: 'cat', stable: 0, whole: 0 });
    expect(hear('   ')).toEqual({ text: 'cat', stable: 1, whole: 1 });
    expect(hear('s_a_t_ ')).toEqual({ text: 'cat sat', stable: 1, whole: 2 });
    expect(hear('s_e_a_t')).toEqual({ text: 'cat sat seat', stable: 2, whole: 2 });
    expect(decoding.finish().text).toBe('cat sat seat');
  });

  it('a later word decides between earlier ones', () => {
    const decoding = createDecoder(spoken).begin();
    const unclear = rows({ s: 0.9, c: 0.08 }, { a: 0.9 }, { t: 0.9 }, { ' ': 0.9 });
    decoding.push(unclear.table, unclear.frames);
    expect(decoding.partial()).toMatchObject({ text: 'sat', stable: 0 });
    const clear = sure('s_a_t ');
    decoding.push(clear.table, clear.frames);
    // "cat sat" is ten times as common as "sat sat".
    expect(decoding.partial().text).toBe('cat sat');
  });

  it('reports the mean confidence over its words, 0 for none', () => {
    const decoding = createDecoder(plain).begin();
    expect(decoding.partial()).toEqual({ text: '', words: [], confidence: 0, stable: 0, whole: 0 });
    const [clear, doubtful] = [sure('ca_t '), rows({ s: 0.4, c: 0.3 }, { e: 0.4, u: 0.3 }, { t: 0.97 })];
    decoding.push(clear.table, clear.frames);
    expect(decoding.partial().confidence).toBeGreaterThan(0.8);
    decoding.push(doubtful.table, doubtful.frames);
    const { text, words, confidence } = decoding.partial();
    expect(text).toBe('cat set');
    expect(words[1]?.confidence).toBeLessThan(0.6);
    expect(confidence).toBeCloseTo(words.reduce((sum, word) => sum + word.confidence, 0) / 2, 12);
    expect(confidence).toBeLessThan(0.8);
  });
});

describe('A6 a long utterance costs as much per frame as a short one', () => {
  /** A beam whose every question to lexicon and language model is counted. */
  function counting() {
    const settled: DecodedToken[] = [];
    let asked = 0;
    const count = <T extends object>(target: T): T =>
      new Proxy(target, {
        get(of, name) {
          const member = Reflect.get(of, name) as unknown;
          if (typeof member !== 'function') return member;
          return (...given: unknown[]) => {
            asked++;
            return member.apply(of, given) as unknown;
          };
        },
      });
    const model = createLanguageModel(arpa);
    const words = createLexicon(lexicon, tokens, model);
    const beam = createBeam(
      {
        ...{ width: WIDTH, blank: 0, wordBoundary: 1, texts: tokens, unspaced: [] },
        lexicon: count(words),
        model: count(model),
        settings: defaults,
      },
      (heard) => settled.push(...heard),
    );
    return { beam, settled, asked: () => asked };
  }

  it('20 s: queries, prefixes in memory and the repeated text stay bounded', () => {
    const { beam, settled, asked } = counting();
    // 25 frames, a second, again and again.
    const random = randomOf(1);
    const second = mumble(['cat', 'sat', 'seat', 'sat'], 0.6, random);
    const most = { asked: [0, 0], held: [0, 0], told: [0, 0], chain: [0, 0] };
    const rounds = Math.ceil(500 / second.frames);
    for (let round = 0; round < rounds; round++) {
      const half = round < rounds / 4 ? 0 : 1;
      for (let at = 0; at < second.frames; at += 8) {
        const count = Math.min(8, second.frames - at);
        const before = asked();
        beam.push(second.table.subarray(at * WIDTH, (at + count) * WIDTH), count);
        const best = beam.best(false);
        let chain = 0;
        for (let trail = best.at(-1)?.trail; trail; trail = trail.before) chain++;
        const now = { asked: asked() - before, held: beam.held(), told: best.length, chain };
        for (const [what, value] of Object.entries(now)) {
          const kept = most[what as keyof typeof most];
          kept[half] = Math.max(kept[half] ?? 0, value);
        }
      }
    }
    expect(settled.length).toBeGreaterThan(200);
    for (const [early = 0, late = 0] of Object.values(most)) {
      expect(early).toBeGreaterThan(0);
      expect(late).toBeLessThanOrEqual(early);
    }
  });

  it('hypotheses that were given up leave nothing behind', () => {
    const { beam } = counting();
    const { table, frames } = mumble(
      Array.from({ length: 60 }, () => 'seat'),
      0.9,
      randomOf(2),
    );
    beam.push(table, frames);
    expect(beam.held()).toBeGreaterThan(1);
    const silence = sure(' ______');
    beam.push(silence.table, silence.frames);
    beam.push(silence.table, silence.frames);
    // Hypotheses, each with the letters behind the last word that all share.
    expect(beam.held()).toBeLessThan(24 * 12);
  });
});
