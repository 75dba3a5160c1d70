import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clipLike, clipPath } from '../stack/clips.ts';
import { join } from '../stack/join.ts';
import type { Shared } from '../stack/running.ts';
import { type Python, startPython } from './python.ts';

let running: Shared;
let openai: Python;

beforeAll(async () => {
  running = await join();
  openai = startPython('openai_calls', { EDGE: running.stack.url, TOKEN: running.stack.token });
});
afterAll(() => openai?.end());

const spoken = clipLike('balance.wav');
const file = clipPath(spoken);
const words = spoken.text.split(' ').length;
const call = <T>(name: string, given: Record<string, unknown> = {}) => openai.call<T>(name, given);
const PREFIX = 'conversation.item.input_audio_transcription';

interface Listened {
  readonly types: readonly string[];
  readonly text?: string;
  readonly error?: { readonly code: string; readonly message: string };
}

describe('C1 C10 R1 openai for Python, unmodified, transcribes', () => {
  it('lists the models', async () => {
    expect(await call('models')).toEqual(expect.arrayContaining(['reference-en', 'voice-en']));
  });

  it('as JSON, as text, as subtitles and with every word', async () => {
    expect(await call('transcribe', { file })).toMatchObject({ text: spoken.text, usage: { type: 'duration' } });
    expect(await call('transcribe', { file, response_format: 'text' })).toBe(`${spoken.text}\n`);
    expect(await call('transcribe', { file, response_format: 'srt' })).toMatch(/^1\n00:00:0/);
    const verbose = await call<{ text: string; words: { word: string }[] }>('transcribe', {
      file,
      response_format: 'verbose_json',
      timestamp_granularities: ['word'],
    });
    expect(verbose.words.map(({ word }) => word).join(' ')).toBe(spoken.text);
  });

  it('as a stream', async () => {
    const events = await call<{ type: string; text?: string }[]>('stream', { file });
    expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done', text: spoken.text });
    expect(events[0]?.type).toBe('transcript.text.delta');
  });

  it.each([
    ['a wrong token', { kind: 'AuthenticationError', status: 401, code: 'token_invalid' }],
    ['an unknown model', { kind: 'NotFoundError', status: 404, code: 'model_unknown' }],
    ['no audio', { kind: 'APIStatusError', status: 415, code: 'audio_unsupported' }],
  ])('%s is an error of the client', async (what, error) => {
    expect(await call('refused', { what, file })).toMatchObject({
      ...error,
      id: expect.stringMatching(/^[\w-]{16,}$/),
    });
  });
});

describe('C10 R1 openai for Python, unmodified, listens live', () => {
  it('in the shape of today', async () => {
    const { types, text } = await call<Listened>('realtime', { file, words });
    expect(text).toBe(spoken.text);
    expect(types.slice(0, 2)).toEqual(['session.created', 'session.updated']);
    expect(types).toContain(`${PREFIX}.delta`);
  });

  it.each([
    ['a wrong token', 'token_invalid'],
    ['an unknown model', 'model_unknown'],
  ])('%s is sent as an event', async (what, code) => {
    expect(await call<Listened>('realtime_refused', { what })).toMatchObject({ error: { code } });
  });
});

describe('R2 C10 openai for Python, unmodified, speaks', () => {
  const input = 'The meeting starts at ten in the morning.';

  it.each([
    ['audio/wav', 'wav', {}],
    ['audio/ogg', 'ogg', { response_format: 'opus', speed: 0.9 }],
  ])('as %s that the recogniser understands', async (type, extension, options) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'auricle-speech-'));
    const speech = path.join(folder, `speech.${extension}`);
    const given = { file: speech, model: 'voice-en', voice: 'slt', input, ...options };
    expect(await call('speak', given)).toBe(type);
    const heard = await call('transcribe', { file: speech });
    rmSync(folder, { recursive: true });
    expect(heard).toMatchObject({ text: 'the meeting starts at ten in the morning' });
  });
});
