import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { buildModel } from '../../../infra/cli/models/build.ts';
import { createDecoder } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import { createLanguageModel } from '../../../infra/pool/agent/asr/decode/language-model.ts';
import { readSentences } from '../../../infra/pool/model-build/adapt/adapt.ts';
import { chanceOf, readArpa, writeArpa } from '../../../infra/pool/model-build/adapt/arpa.ts';
import { mixModels } from '../../../infra/pool/model-build/adapt/mix.ts';
import { arpa, rows, spoken, tokens } from '../decode/tables.ts';
import { folderForTest } from '../local/folder.ts';

const base = readArpa(arpa);
if (!base) throw new Error('no model');
const text = ['cute cat', 'cute cat', 'cat sat', 'cat seat', 'cat seat'].map((line) => line.split(' '));

describe('M8 the language model of a text', () => {
  it('gives probabilities that sum up to 1 behind every history', () => {
    const even = readArpa('\\1-grams:\n-99\t<s>\n-0.602\t</s>\n-0.602\t<unk>\n-0.602\tcat\n-0.602\tsat\n');
    if (!even) throw new Error('no model');
    const mixed = mixModels(even, text, 0.5);
    const words = [...(mixed[0]?.keys() ?? [])].filter((word) => word !== '<s>');
    for (const history of ['', '<s> ', 'cute ', 'cat ', 'sat ', '<s> cute ', 'cute cat ']) {
      const total = words.reduce((sum, word) => sum + 10 ** chanceOf(mixed, `${history}${word}`), 0);
      expect(total).toBeCloseTo(1, 3);
    }
  });

  it('prefers the words of the text, the more the greater its weight', () => {
    const chance = (weight: number, gram: string) => chanceOf(mixModels(base, text, weight), gram);
    expect(chance(0.5, '<s> cute')).toBeGreaterThan(chanceOf(base, '<s> cute'));
    expect(chance(0.8, '<s> cute cat')).toBeGreaterThan(chance(0.2, '<s> cute cat'));
    expect(chance(0.8, '<s> cat')).toBeLessThan(chance(0.2, '<s> cat'));
  });

  it('is read by the decoder as it was written', () => {
    const mixed = mixModels(base, text, 0.5);
    const model = createLanguageModel(writeArpa(mixed));
    const state = model.after(model.start, 'cute');
    expect(model.score(state, 'cat')).toBeCloseTo(Math.LN10 * chanceOf(mixed, '<s> cute cat'), 2);
    expect(model.unigram('cute')).toBeCloseTo(Math.LN10 * chanceOf(mixed, 'cute'), 2);
  });

  it('takes sentences in the letters of the model', () => {
    const { sentences, unspellable } = readSentences('Cat, cute-cat. Sat 42 tase!\n\nxyz\nTaes', tokens, 1);
    expect(sentences).toEqual([['cat', 'cute', 'cat'], ['sat'], ['tase'], ['taes']]);
    expect(unspellable).toBe(2);
  });

  it('counts characters of scripts without spaces as words', () => {
    const { sentences, unspellable } = readSentences('今天，好。天鑫今 a今', ['<blank>', '今', '天', '好', 'a'], -1);
    expect(sentences).toEqual([['今', '天', '好'], ['天'], ['今', 'a', '今']]);
    expect(unspellable).toBe(1);
  });
});

/** A repository with a recogniser of the words of `tables.ts`. */
function writeModel(parameters: Readonly<Record<string, string>>): string {
  const folder = path.join(folderForTest(), 'speech');
  mkdirSync(folder);
  const given = {
    language: 'en',
    sample_rate: '16000',
    frame_milliseconds: '40',
    vocabulary: 'tokens.txt',
    ...parameters,
  };
  const lines = Object.entries(given).map(
    ([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`,
  );
  writeFileSync(
    path.join(folder, 'config.pbtxt'),
    `platform: "ensemble"\nensemble_scheduling { }\n${lines.join('\n')}\n`,
  );
  writeFileSync(path.join(folder, 'tokens.txt'), `<blank>\n<space>\n${tokens.slice(2).join('\n')}\n`);
  writeFileSync(path.join(folder, 'words.txt'), `${spoken.lexicon?.join('\n')}\n`);
  writeFileSync(path.join(folder, 'words.lm.gz'), gzipSync(arpa));
  return folder;
}

describe('auricle model adapt', () => {
  const adapt = (...words: string[]) => buildModel(['adapt', ...words]);

  it('M8 makes a revision that finds the words of a text', async () => {
    const folder = writeModel({ lexicon: 'words.txt', language_model: 'words.lm.gz' });
    const [domain, out] = [path.join(folder, '../domain.txt'), path.join(folder, '../out')];
    writeFileSync(domain, 'Cute cat 7.\n'.repeat(5));
    const made = await adapt(folder, domain, '--out', out);
    expect(made, made.text).toMatchObject({
      exit: 0,
      value: { parts: ['speech'], added: ['cute'], unspellable: 5 },
    });
    expect(made.text).toContain(`auricle model sign ${out} speech`);
    const read = (file: string) => readFileSync(path.join(out, 'speech', file));
    const adapted = {
      lexicon: read('words.txt').toString().trim().split('\n'),
      languageModel: gunzipSync(read('words.lm.gz')).toString(),
    };
    const sound = rows({ c: 0.9 }, { u: 0.75, a: 0.2 }, { t: 0.9 }, { e: 0.5, _: 0.45 }, { ' ': 0.9 });
    const decode = (assets: object) => {
      const decoding = createDecoder({ ...spoken, ...assets }).begin();
      decoding.push(sound.table, sound.frames);
      return decoding.finish().text;
    };
    expect([decode({}), decode(adapted)]).toEqual(['cat', 'cute']);
    expect((await adapt(folder, domain, '--out', out)).text).toBe(`exists: ${out} exists`);
  });

  it.each([
    ['a model without a language model', {}, 'a cat', 'unsupported'],
    [
      'a text without a word that it can spell',
      { lexicon: 'words.txt', language_model: 'words.lm.gz' },
      '42',
      'unreadable',
    ],
  ])('refuses %s', async (_, parameters, words, kind) => {
    const folder = writeModel(parameters);
    const domain = path.join(folder, '../domain.txt');
    writeFileSync(domain, words);
    expect((await adapt(folder, domain, '--out', path.join(folder, '../out'))).value).toMatchObject({
      error: { kind },
    });
  });
});
