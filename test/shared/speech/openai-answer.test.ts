import { describe, expect, it } from 'vitest';
import { deltaFrame, errorFrame, finalFrame } from '../../../edge/http/openai-stream.ts';
import { needsWords, renderTranscript } from '../../../shared/speech/openai-answer.ts';
import { readForm, responseFormats } from '../../../shared/speech/openai-form.ts';
import { renderSrt, renderVtt } from '../../../shared/speech/subtitles.ts';
import type { Segment, Transcript } from '../../../shared/speech/transcript.ts';

const segment = (index: number, start: number, end: number, text: string): Segment => ({
  type: 'segment',
  index,
  start,
  end,
  text,
  confidence: 0.9,
  logProbability: -0.25,
  words: text.split(' ').map((word, at, all) => ({
    word,
    start: start + ((end - start) * at) / all.length,
    end: start + ((end - start) * (at + 1)) / all.length,
    confidence: 0.9,
  })),
});

const transcript: Transcript = {
  segments: [segment(0, 0.1 + 0.2, 1.5, 'fire & <water>'), segment(1, 3_599.9996, 3_605.04, 'a --> b')],
  final: {
    type: 'final',
    model: 'reference-en',
    revision: `sha256:${'0'.repeat(64)}`,
    language: 'en-GB',
    durationSeconds: 3_726.2,
    speechSeconds: 126.24,
    segments: 2,
  },
};
/** Long enough to be cut between words where a format does that. */
const spoken: Transcript = {
  ...transcript,
  segments: [segment(0, 0, 20, Array.from({ length: 30 }, (_, at) => `word${at}`).join(' ')), ...transcript.segments],
};
const empty: Transcript = { segments: [], final: { ...transcript.final, segments: 0 } };

function render(fields: Record<string, string[]>, of = transcript) {
  const form = readForm({ model: ['m'], ...fields });
  if (!form.ok) throw new Error(form.refusal.reason);
  return renderTranscript(of, form.value);
}

describe('C10 words of segments', () => {
  const textOnly = { ...spoken, segments: spoken.segments.map((one) => ({ ...one, words: [] })) };
  const forms = responseFormats.flatMap((format) =>
    [['word'], ['segment'], ['word', 'segment'], []].map((asked) => ({
      response_format: [format],
      ...(asked.length > 0 && { timestamp_granularities: asked }),
    })),
  );

  it.each(forms)(
    'make no difference to an answer that does without them: $response_format $timestamp_granularities',
    (fields) => {
      const form = readForm({ model: ['m'], ...fields });
      const changes = render(fields, textOnly).body !== render(fields, spoken).body;
      expect(form.ok && needsWords(form.value)).toBe(changes);
    },
  );
});

describe('U3 log probabilities', () => {
  it('come with each word, in one answer and in frames', () => {
    const answer = JSON.parse(render({ include: ['logprobs'] }).body) as {
      logprobs: { token: string }[];
      text: string;
    };
    expect(answer.logprobs.map(({ token }) => token).join('')).toBe(answer.text);
    expect(answer.logprobs[0]).toMatchObject({ logprob: Math.log(0.9) });
    const form = readForm({ model: ['m'], include: ['logprobs'] });
    expect(form.ok && needsWords(form.value)).toBe(true);
    const frames = [deltaFrame(transcript.segments[0] as Segment, '', true), finalFrame(transcript, true)];
    for (const frame of frames) expect(frame).toContain('"logprobs":[{"token":"fire"');
  });
});

describe('C10 golden answers', () => {
  it.each(responseFormats)('%s', async (format) => {
    const fields = { response_format: [format], timestamp_granularities: ['word', 'segment'] };
    const { contentType, body } = render(fields);
    const pretty = contentType === 'application/json' ? `${JSON.stringify(JSON.parse(body), undefined, 2)}\n` : body;
    await expect(`${contentType}\n\n${pretty}`).toMatchFileSnapshot(`golden/${format}.txt`);
  });

  it.each([
    ['json', '{"text":"","usage":{"type":"duration","seconds":3727}}'],
    ['text', '\n'],
    ['srt', ''],
    ['vtt', 'WEBVTT\n\n'],
  ])('no speech: %s', (format, body) => {
    expect(render({ response_format: [format] }, empty).body).toBe(body);
  });

  it.each([
    [[], { words: false, segments: true }],
    [['word'], { words: true, segments: false }],
    [['segment'], { words: false, segments: true }],
    [['word', 'segment'], { words: true, segments: true }],
  ])('verbose_json with granularities %j', (asked, has) => {
    const body = JSON.parse(render({ response_format: ['verbose_json'], timestamp_granularities: asked }).body);
    expect({ words: 'words' in body, segments: 'segments' in body }).toEqual(has);
  });

  it('a language without a name stays a tag', () => {
    const of = { ...empty, final: { ...empty.final, language: 'x1' } };
    expect(JSON.parse(render({ response_format: ['verbose_json'] }, of).body).language).toBe('x1');
  });
});

describe('C10 subtitles', () => {
  it('a time just under a full hour carries over', () => {
    expect(renderSrt(transcript.segments)).toContain('01:00:00,000 --> 01:00:05,040');
    expect(renderVtt(transcript.segments)).toContain('01:00:00.000 --> 01:00:05.040');
  });

  it('no text can end a cue or start another', () => {
    const wild = [segment(0, 0, 1, 'one\n\n2\n00:00:09,000 --> 00:00:10,000\nforged')];
    expect(renderSrt(wild).match(/-->/g)).toHaveLength(1);
    expect(renderSrt(wild).trimEnd()).not.toContain('\n\n');
    expect(renderVtt(wild).match(/-->/g)).toHaveLength(1);
  });
});

describe('C10 frames of a stream', () => {
  it('deltas joined are the text of the last frame', () => {
    const text = (frame: string) => JSON.parse(frame.slice('data: '.length)) as { delta: string; text: string };
    const deltas = transcript.segments.map(
      (one, at) => text(deltaFrame(one, transcript.segments[at - 1]?.text ?? '', false)).delta,
    );
    expect(deltas.join('')).toBe(text(finalFrame(transcript, false)).text);
  });

  it('every frame is one line and an empty one', () => {
    const frames = [
      deltaFrame(segment(0, 0, 1, 'two\nlines'), '', false),
      finalFrame(transcript, true),
      errorFrame({ reason: 'pool_lost' }),
    ];
    for (const frame of frames) expect(frame).toMatch(/^data: [^\n]*\n\n$/);
  });

  it('an error names its code, and the field at fault', () => {
    const { error } = JSON.parse(
      errorFrame({ reason: 'field_invalid', params: { field: 'stream', rule: 'x' } }).slice(6),
    );
    expect(error).toEqual({
      message: 'The field "stream" is not valid: x.',
      type: 'invalid_request_error',
      param: 'stream',
      code: 'field_invalid',
    });
  });
});
