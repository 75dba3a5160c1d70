import { describe, expect, it } from 'vitest';
import {
  agreesOnLanguage,
  allowsLanguage,
  allowsModel,
  allowsSpoken,
  canonicalTag,
} from '../../../shared/pool/language.ts';

describe('C4 one rule for languages', () => {
  it.each<[string[], string, boolean]>([
    [['*'], 'xx', true],
    [['en'], 'en', true],
    [['en'], 'EN-gb', true],
    [['EN'], 'en-GB-oed', true],
    [['en-GB'], 'en', false],
    [['en-GB'], 'en-US', false],
    [['zh-Hant'], 'zh-Hant-TW', true],
    [['zh-Hant'], 'zh-Hans', false],
    [['e'], 'en', false],
    [['de', 'fr'], 'en', false],
    [['zh'], 'zh-yue', false],
    [['yue'], 'zh-yue', true],
    [['zh-yue'], 'yue-HK', true],
    [['zh'], 'zh-Hant-HK', true],
    [['zh'], 'cmn-Hans', true],
    [['eng'], 'en-GB', true],
    [[], 'en', false],
  ])('a token with %j asks for %s: %s', (allowed, wanted, may) => {
    expect(allowsLanguage(allowed, wanted)).toBe(may);
  });

  it.each<[string[], string[], string | undefined, boolean]>([
    [['*'], ['en'], undefined, true],
    [['fr'], ['en'], undefined, false],
    [['fr'], ['en'], 'auto', false],
    [['fr'], ['en'], '', false],
    [['fr'], ['en', 'fr'], undefined, true],
    [['fr-CA'], ['fr'], undefined, true],
    [['fr'], ['fr-CA'], undefined, true],
    [['fr-CA'], ['fr-FR'], undefined, false],
    [['fr'], ['en', 'fr'], 'en', false],
    [['fr'], ['en', 'fr'], 'fr-CA', true],
    [[], ['en'], undefined, false],
  ])('a token with %j, a model of %j, language %s: %s', (allowed, served, wanted, may) => {
    expect(allowsModel(allowed, served, wanted)).toBe(may);
  });

  it.each<[string[], string, boolean]>([
    [['*'], 'en', true],
    [['en-GB'], 'en', true],
    [['en'], 'en-US', true],
    [['en-GB'], 'en-US', false],
    [['fr'], 'en', false],
  ])('a token with %j, words in %s: %s', (allowed, heard, may) => {
    expect(allowsSpoken(allowed, heard)).toBe(may);
  });

  it.each<[string | undefined, string | undefined, boolean]>([
    ['en', 'en-US', true],
    ['en-US', 'en', true],
    ['EN', 'en', true],
    ['en-US', 'en-GB', false],
    ['en', 'de', false],
    [undefined, 'de', true],
    ['auto', 'de', true],
    ['en', '', true],
    ['en', 'AUTO', true],
  ])('header %s, form %s: %s', (one, other, agree) => {
    expect(agreesOnLanguage(one, other)).toBe(agree);
  });

  it.each([
    ['zh-yue', 'yue'],
    ['ZH-YUE-hk', 'yue-HK'],
    ['zh-cmn-Hans', 'zh-Hans'],
    ['cmn', 'zh'],
    ['eng', 'en'],
    ['zh-hk', 'zh-HK'],
    ['zh-Hant-HK', 'zh-Hant-HK'],
    ['en-USA', 'en-USA'],
    ['*', '*'],
  ])('C4 the canonical form of %s is %s', (tag, canonical) => {
    expect(canonicalTag(tag)).toBe(canonical);
  });
});
