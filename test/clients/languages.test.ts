import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clipLike, clipPath } from '../stack/clips.ts';
import { join } from '../stack/join.ts';
import { type Python, startPython } from './python.ts';

interface SpokenClip {
  readonly language: string;
  readonly file: string;
  readonly text: string;
}

const folder = path.join(import.meta.dirname, '../clips/languages');
const foreign: readonly SpokenClip[] = JSON.parse(readFileSync(path.join(folder, 'clips.json'), 'utf8'));
const english = clipLike('balance.wav');
/** A clip of each language. */
const clips = [
  { language: 'en', file: clipPath(english), text: english.text },
  ...foreign.flatMap((clip) => (clip.file.endsWith('.wav') ? [{ ...clip, file: path.join(folder, clip.file) }] : [])),
];
const names: Readonly<Record<string, string>> = { en: 'english', es: 'spanish', zh: 'chinese', yue: 'cantonese' };

let openai: Python;
let deepgram: Python;

beforeAll(async () => {
  const { stack } = await join();
  openai = startPython('openai_calls', { EDGE: stack.url, TOKEN: stack.token });
  deepgram = startPython('deepgram_calls', { EDGE: stack.url, TOKEN: stack.token });
});
afterAll(() => Promise.all([openai?.end(), deepgram?.end()]));

describe('C6 R3 U6 a family through one address', () => {
  it.each(clips)('openai for Python transcribes $language, named and detected', async ({ language, file, text }) => {
    const given = { file, model: 'reference', response_format: 'verbose_json' };
    const expected = { language: names[language], text };
    expect(await openai.call('transcribe', { ...given, language })).toMatchObject(expected);
    expect(await openai.call('transcribe', given)).toMatchObject(expected);
  });

  it.each(clips)('deepgram-sdk for Python detects $language', async ({ language, file, text }) => {
    const given = { file, model: 'reference', detect_language: true };
    expect(await deepgram.call('transcribe', given)).toMatchObject({
      results: { channels: [{ detected_language: language, alternatives: [{ transcript: text }] }] },
    });
  });
});
