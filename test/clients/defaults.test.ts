// Official clients with their default settings, on the names that the local stack gives to its models.
import { createReadStream } from 'node:fs';
import { createDeepgram } from '@ai-sdk/deepgram';
import { createOpenAI } from '@ai-sdk/openai';
import { DeepgramClient } from '@deepgram/sdk';
import { experimental_transcribe as transcribe } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setNames } from '../../infra/local/names.ts';
import { clipBytes, clipLike, clipPath } from '../stack/clips.ts';
import { join } from '../stack/join.ts';
import { type Python, startPython } from './python.ts';

const spoken = clipLike('balance.wav');
const file = clipPath(spoken);

let url: string;
let apiKey: string;
let python: Record<'openai' | 'deepgram', Python>;

beforeAll(async () => {
  const { stack } = await join();
  ({ url, token: apiKey } = stack);
  await setNames(url, apiKey);
  const env = { EDGE: url, TOKEN: apiKey };
  python = { openai: startPython('openai_calls', env), deepgram: startPython('deepgram_calls', env) };
});
afterAll(() => {
  for (const one of Object.values(python ?? {})) one.end();
});

interface Logprob {
  readonly token: string;
}

describe('U3 C10 clients with default settings transcribe', () => {
  it.each(['whisper-1', 'gpt-4o-transcribe'])('openai for JavaScript with %s', async (model) => {
    const openai = new OpenAI({ apiKey, baseURL: `${url}/v1` });
    expect((await openai.audio.transcriptions.create({ file: createReadStream(file), model })).text).toBe(spoken.text);
  });

  it('openai for Python with log probabilities and a language by name', async () => {
    const given = { file, model: 'gpt-4o-mini-transcribe', include: ['logprobs'], language: 'english' };
    const answer = await python.openai.call<{ text: string; logprobs: Logprob[] }>('transcribe', given);
    expect(answer.logprobs.map(({ token }) => token).join('')).toBe(spoken.text);
  });

  it('the Vercel AI SDK over OpenAI', async () => {
    const openai = createOpenAI({ apiKey, baseURL: `${url}/v1` });
    for (const name of ['whisper-1', 'gpt-4o-transcribe']) {
      const { text } = await transcribe({ model: openai.transcription(name), audio: clipBytes(spoken) });
      expect(text).toBe(spoken.text);
    }
  });

  it('the Vercel AI SDK over Deepgram, which requests speakers', async () => {
    // The provider has no setting for its address.
    const own: typeof fetch = (input, init) => fetch(String(input).replace('https://api.deepgram.com', url), init);
    const deepgram = createDeepgram({ apiKey, fetch: own });
    const { text } = await transcribe({ model: deepgram.transcription('nova-3'), audio: clipBytes(spoken) });
    expect(text).toBe(spoken.text);
  });

  it('deepgram-sdk for JavaScript', async () => {
    const environment = { base: url, production: url, agent: url, agentRest: url };
    const deepgram = new DeepgramClient({ apiKey, environment });
    const answer = await deepgram.listen.v1.media.transcribeFile(createReadStream(file), {
      model: 'nova-3',
      smart_format: true,
    });
    if (!('results' in answer)) throw new Error('not a transcript');
    expect(answer.results.channels[0]?.alternatives?.[0]?.transcript).toBe(spoken.text);
  });

  it('deepgram-sdk for Python with speakers, and its projects', async () => {
    const given = { file, model: 'nova-3', diarize: true, detect_language: true };
    const answer = await python.deepgram.call<{ metadata: { warnings?: { parameter: string }[] } }>(
      'transcribe',
      given,
    );
    expect(answer.metadata.warnings?.map(({ parameter }) => parameter)).toEqual(['diarize', 'detect_language']);
    expect(await python.deepgram.call('projects')).toEqual({ projects: [{ project_id: 'dev', name: 'dev' }] });
  });
});
