import { describe, expect, it } from 'vitest';
import { renderRecording } from '../../../edge/protocol/deepgram-answer.ts';
import { deepgramListen } from '../../../edge/protocol/deepgram-listen.ts';
import { renderTranscript } from '../../../shared/speech/openai-answer.ts';
import { readForm, responseFormats } from '../../../shared/speech/openai-form.ts';
import type { Segment, Transcript } from '../../../shared/speech/transcript.ts';

const TEXT = 'Well, Dr. Who? It\u2019s McCoy\u2019s e-mail!';
const segment: Segment = {
  ...{ type: 'segment', index: 0, start: 0, end: 6, text: TEXT, confidence: 0.9, logProbability: -0.1 },
  words: TEXT.split(' ').map((word, at) => ({ word, start: at, end: at + 1, confidence: 0.9 })),
};
const transcript: Transcript = {
  segments: [segment],
  final: {
    ...{ type: 'final', model: 'm', revision: 'r', language: 'en' },
    ...{ durationSeconds: 6, speechSeconds: 6, segments: 1 },
  },
};
const bare = ['well', 'dr', 'who', 'it\u2019s', 'mccoy\u2019s', 'e-mail'];

describe('M9 case and punctuation of a model', () => {
  it.each(responseFormats)('reach %s as they are', (format) => {
    const form = readForm({ model: ['m'], response_format: [format], timestamp_granularities: ['word'] });
    if (!form.ok) throw new Error(form.refusal.reason);
    expect(renderTranscript(transcript, form.value).body).toContain(TEXT);
  });

  it('reach a recording of Deepgram in punctuated_word and sentences', () => {
    const facts = { request: 'q', created: 0, model: 'm', newId: () => 'u', sha256: '', uuid: 'u' };
    const options = {
      ...{ multichannel: false, utterances: true, utteranceSplit: 2, paragraphs: true, detectLanguage: false },
      ...{ tags: [], extra: {}, warnings: [] },
    };
    const { channels, utterances } = renderRecording(transcript, options, facts).results;
    const [alternative] = channels[0]?.alternatives ?? [];
    expect(alternative?.transcript).toBe(TEXT);
    expect(alternative?.words.map(({ word }) => word)).toEqual(bare);
    expect(alternative?.words.map((one) => one.punctuated_word).join(' ')).toBe(TEXT);
    expect(utterances?.[0]?.transcript).toBe(TEXT);
    expect(alternative?.paragraphs?.paragraphs[0]?.sentences).toMatchObject([
      { text: 'Well, Dr.', start: 0, end: 2 },
      { text: 'Who?', start: 2, end: 3 },
      { text: 'It\u2019s McCoy\u2019s e-mail!', start: 3, end: 6 },
    ]);
  });

  it('reach a stream of Deepgram', () => {
    const made = deepgramListen(new URL('https://edge.test/v1/listen?model=m&encoding=linear16&sample_rate=16000'));
    if (!made.ok) throw new Error(made.refusal.reason);
    const [frame = ''] = made.value.render({ ...segment, ending: 'endpoint' }, 0);
    const [alternative] = JSON.parse(String(frame)).channel.alternatives;
    expect(alternative.transcript).toBe(TEXT);
    expect(alternative.words[0]).toMatchObject({ word: 'well', punctuated_word: 'Well,' });
  });
});

describe('M9 characters of scripts without spaces', () => {
  it.each([
    ['Thai', ['\u0e17\u0e35\u0e48', '\u0e19\u0e35\u0e48']],
    ['Mandarin', ['今', '天']],
  ])('joins characters of %s without spaces and keeps their vowel signs', (_, spelled) => {
    const text = spelled.join('');
    const words = spelled.map((word, at) => ({ word, start: at, end: at + 1, confidence: 0.9 }));
    const segments = [0, 1].map((index) => ({ ...segment, index, text, words }));
    const form = readForm({ model: ['m'], response_format: ['text'] });
    if (!form.ok) throw new Error(form.refusal.reason);
    expect(renderTranscript({ ...transcript, segments }, form.value).body).toBe(`${text}${text}\n`);
    const options = {
      ...{ multichannel: false, utterances: true, utteranceSplit: 2, paragraphs: true, detectLanguage: false },
      ...{ tags: [], extra: {}, warnings: [] },
    };
    const facts = { request: 'q', created: 0, model: 'm', newId: () => 'u', sha256: '', uuid: 'u' };
    const { channels, utterances } = renderRecording({ ...transcript, segments }, options, facts).results;
    expect(channels[0]?.alternatives[0]?.words.slice(0, 2).map(({ word }) => word)).toEqual(spelled);
    expect(utterances?.[0]?.transcript).toBe(`${text}${text}`);
  });
});
