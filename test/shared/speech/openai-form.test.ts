import { describe, expect, it } from 'vitest';
import { publicText } from '../../../shared/refusal.ts';
import { readForm } from '../../../shared/speech/openai-form.ts';

const refusalOf = (fields: Record<string, string[]>) => {
  const form = readForm(fields);
  return form.ok ? 'accepted' : publicText(form.refusal);
};

describe('C10 the form of a transcription', () => {
  it('model alone, with defaults', () => {
    expect(readForm({ model: ['reference-en'] })).toEqual({
      ok: true,
      value: {
        model: 'reference-en',
        language: undefined,
        prompt: undefined,
        responseFormat: 'json',
        temperature: 0,
        stream: false,
        logprobs: false,
        granularities: ['segment'],
      },
    });
  });

  it('everything', () => {
    const form = readForm({
      model: ['m'],
      language: ['en-GB'],
      prompt: ['names'],
      response_format: ['verbose_json'],
      temperature: ['0.4'],
      stream: ['False'],
      timestamp_granularities: ['word', 'segment', 'word'],
    });
    expect(form).toMatchObject({
      ok: true,
      value: {
        language: 'en-GB',
        responseFormat: 'verbose_json',
        temperature: 0.4,
        stream: false,
        logprobs: false,
        granularities: ['word', 'segment'],
      },
    });
  });

  it.each([
    ['stream', 'true'],
    ['stream', 'True'],
    ['stream', '1'],
  ])('%s=%s', (name, value) => {
    expect(readForm({ model: ['m'], [name]: [value] })).toMatchObject({ value: { stream: true } });
  });

  it('language auto, and an untouched input, leave the language open', () => {
    for (const language of ['auto', '']) {
      expect(readForm({ model: ['m'], language: [language] })).toMatchObject({ value: { language: undefined } });
    }
  });

  it.each([
    ['english', 'en'],
    ['Spanish', 'es'],
    ['Cantonese', 'yue'],
    ['chinese', 'zh'],
    ['mandarin', 'zh'],
    ['castilian', 'es'],
    ['hebrew', 'he'],
    ['en-GB', 'en-GB'],
    ['zh-yue', 'yue'],
    ['cmn', 'zh'],
    ['eng', 'en'],
    ['en,es', undefined],
    ['english, german', undefined],
    ['klingonese', 'klingonese'],
  ])('U3 reads the language %s as %s', (language, expected) => {
    expect(readForm({ model: ['m'], language: [language] })).toMatchObject({ value: { language: expected } });
  });

  it.each(['keywords', 'chunking_strategy', 'chunking_strategy[type]', 'user', 'anything'])(
    'a field that is not looked at: %s',
    (name) => {
      expect(refusalOf({ model: ['m'], [name]: ['x'] })).toBe('accepted');
    },
  );

  it.each([
    [{}, 'The field "model" is missing.'],
    [{ model: [''] }, 'The field "model" is missing.'],
    [{ model: ['a', 'b'] }, 'The field "model" is not valid: must appear once.'],
    [{ model: ['A B'] }, 'The field "model" is not valid: must be the name of a model, as GET /v1/models lists it.'],
    [
      { model: ['m'], language: ['english!'] },
      'The field "language" is not valid: must be a language such as "en" or "english", a list of them, or "auto".',
    ],
    [
      { model: ['m'], response_format: ['diarized_json'] },
      'The field "response_format" is not valid: must be one of json, text, srt, verbose_json, vtt.',
    ],
    [{ model: ['m'], temperature: ['2'] }, 'The field "temperature" is not valid: must be a number from 0 to 1.'],
    [{ model: ['m'], temperature: ['1e9'] }, 'The field "temperature" is not valid: must be a number from 0 to 1.'],
    [{ model: ['m'], stream: ['yes'] }, 'The field "stream" is not valid: must be "true" or "false".'],
    [
      { model: ['m'], stream: ['true'], response_format: ['srt'] },
      'The field "stream" is not valid: is not possible with response_format srt.',
    ],
    [
      { model: ['m'], timestamp_granularities: ['letter'] },
      'The field "timestamp_granularities" is not valid: each must be "word" or "segment".',
    ],
    [{ model: ['m'], include: ['speakers'] }, 'The field "include" is not valid: each must be "logprobs".'],
    [
      { model: ['m'], include: ['logprobs'], response_format: ['text'] },
      'The field "include" is not valid: is not possible with response_format text.',
    ],
    [
      { model: ['m'], known_speaker_names: ['Ann'] },
      'The field "known_speaker_names" is not valid: speakers are not told apart.',
    ],
  ])('%j', (fields, text) => {
    expect(refusalOf(fields as Record<string, string[]>)).toBe(text);
  });

  it('a prototype is no field', () => {
    expect(refusalOf(JSON.parse('{"model":["m"],"__proto__":["x"],"constructor":["y"]}'))).toBe('accepted');
  });
});
