import { createReadStream } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import OpenAI, { toFile } from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import { wav } from '../wav.ts';
import { clipBytes, clipLike, clipPath, clips } from './clips.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

let running: Shared;
let client: OpenAI;

beforeAll(async () => {
  running = await join();
  client = new OpenAI({ apiKey: running.stack.token, baseURL: `${running.stack.url}/v1`, maxRetries: 0 });
}, 60_000);

const spoken = clipLike('.wav');
const file = () => createReadStream(clipPath(spoken));
const model = 'reference-en';

describe('C1 C10 R1 the unmodified openai client transcribes', () => {
  it.each(clips.map((clip) => [clip.file, clip] as const))('%s: the words that were spoken', async (_, clip) => {
    const answer = await client.audio.transcriptions.create({ file: createReadStream(clipPath(clip)), model });
    expect(answer.text).toBe(clip.text);
    expect(answer.usage?.type).toBe('duration');
  });

  it('U11 reads the remaining allowance and the time of the next admission', async () => {
    const allowance = { requestsPerMinute: 60, audioSecondsPerDay: 1 };
    const apiKey = await running.mint({ tenant: 'rated', audit: 'strict', allowance });
    const rated = new OpenAI({ apiKey, baseURL: client.baseURL, maxRetries: 0 });
    const today = () => Math.floor(Date.now() / 86_400_000);
    const day = today();
    const { response } = await rated.audio.transcriptions.create({ file: file(), model }).withResponse();
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': expect.stringMatching(/^\d+s$/),
      'x-ratelimit-limit-audio-seconds': '1',
      'x-ratelimit-remaining-audio-seconds': '1',
      'x-ratelimit-reset-audio-seconds': '0s',
    });
    const again = () => rated.audio.transcriptions.create({ file: file(), model }).catch((error: unknown) => error);
    let refused = await again();
    // The second request is admitted where a UTC day begins after the first, and uses that day up.
    if (today() !== day) refused = await again();
    if (!(refused instanceof OpenAI.RateLimitError)) throw refused;
    expect(refused.code).toBe('allowance_seconds');
    const { headers } = refused;
    expect(headers.get('x-ratelimit-remaining-audio-seconds')).toBe('0');
    expect(`${headers.get('retry-after')}s`).toBe(headers.get('x-ratelimit-reset-audio-seconds'));
  });

  it('as text, srt and vtt', async () => {
    const text = await client.audio.transcriptions.create({ file: file(), model, response_format: 'text' });
    expect(text).toBe(`${spoken.text}\n`);
    const srt = await client.audio.transcriptions.create({ file: file(), model, response_format: 'srt' });
    expect(srt).toMatch(/^1\n00:00:0\d,\d{3} --> 00:00:\d\d,\d{3}\n/);
    const vtt = await client.audio.transcriptions.create({ file: file(), model, response_format: 'vtt' });
    expect(vtt).toMatch(/^WEBVTT\n\n00:00:0\d\.\d{3} --> 00:00:\d\d\.\d{3}\n/);
    for (const subtitles of [srt, vtt]) {
      const words = subtitles
        .replace(/WEBVTT|^\d+$|^.*-->.*$/gm, '')
        .split(/\s+/)
        .filter(Boolean);
      expect(words.join(' ')).toBe(spoken.text);
    }
  });

  it('as verbose_json with word and segment timestamps', async () => {
    const answer = await client.audio.transcriptions.create({
      file: file(),
      model,
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    });
    expect(answer.text).toBe(spoken.text);
    expect(answer.words?.map((word) => word.word).join(' ')).toBe(spoken.text);
    expect(answer.segments?.map((segment) => segment.text.trim()).join(' ')).toBe(spoken.text);
    const times = answer.words?.flatMap((word) => [word.start, word.end]) ?? [];
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(Number(answer.duration));
  });

  it('as a stream of deltas', async () => {
    const events = await client.audio.transcriptions.create({ file: file(), model, stream: true });
    let deltas = '';
    let done = '';
    for await (const event of events) {
      if (event.type === 'transcript.text.delta') deltas += event.delta;
      if (event.type === 'transcript.text.done') done = event.text;
    }
    expect(done).toBe(spoken.text);
    expect(deltas.trim()).toBe(spoken.text);
  });

  it('as a stream during the upload, with model and stream before the file', async () => {
    const bytes = clipBytes(spoken);
    const form = `--x\r\ncontent-disposition: form-data; name="model"\r\n\r\n${model}\r\n--x\r\ncontent-disposition: form-data; name="stream"\r\n\r\ntrue\r\n--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`;
    // An open-ended recording: the clip, then silence, and nothing more until the first words came back.
    const head = bytes.slice(0, 44);
    new DataView(head.buffer).setUint32(40, 0xffffffff, true);
    const sent = request(`${running.stack.url}/v1/audio/transcriptions?model=${model}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.stack.token}`, 'content-type': 'multipart/form-data; boundary=x' },
    });
    const answered = new Promise<IncomingMessage>((resolve, reject) =>
      sent.on('response', resolve).on('error', reject),
    );
    sent.write(form);
    sent.write(head);
    sent.write(bytes.slice(44));
    // Over 1 MiB, so that the edge streams the body instead of buffering it.
    sent.write(new Uint8Array(2 ** 20));
    const answer = await answered;
    answer.setEncoding('utf8');
    let text = '';
    let isEnded = false;
    for await (const chunk of answer) {
      text += chunk;
      if (!isEnded && text.includes('delta')) {
        isEnded = true;
        sent.end('\r\n--x--\r\n');
      }
    }
    expect(isEnded).toBe(true);
    expect(text).toContain(spoken.text);
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  it('with text parts before the file, as the Python client does', async () => {
    const form = new FormData();
    form.set('model', model);
    form.set('response_format', 'json');
    form.append('timestamp_granularities[]', 'word');
    form.set('file', new Blob([clipBytes(spoken)], { type: 'audio/x-wav' }), 'speech.wav');
    const answer = await fetch(`${running.stack.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.stack.token}` },
      body: form,
    });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ text: spoken.text });
  });

  it('silence as an empty transcript', async () => {
    const silence = await toFile(wav(new Int16Array(16_000)), 'silence.wav');
    const answer = await client.audio.transcriptions.create({ file: silence, model });
    expect(answer.text).toBe('');
  });

  it('lists the models', async () => {
    const ids: string[] = [];
    for await (const one of client.models.list()) ids.push(one.id);
    expect(ids).toContain(model);
    expect(await client.models.retrieve(model)).toMatchObject({ id: model, object: 'model' });
  });

  it('returns the request id', async () => {
    const { response } = await client.models.list().withResponse();
    expect(response.headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/);
  });

  it('R14: an agent’s metrics page has its own and its engine’s series', async () => {
    await client.audio.transcriptions.create({ model, file: file() });
    const pages = await Promise.all(
      running.stack.pools.map(async ({ name }) => {
        const answer = await fetch(`http://127.0.0.1:${running.stack.ports[`agent-${name}`]}/metrics`);
        return answer.text();
      }),
    );
    for (const page of pages) expect(page).toMatch(/^auricle_agent_\w+/m);
    const served = pages.map(
      (page) => /^nv_inference_request_success\{.*model="asr_inference[^"]*".*\} (\d+)/m.exec(page)?.[1],
    );
    expect(served.some((count) => Number(count) > 0)).toBe(true);
  });

  it('logs neither words nor tokens', () => {
    const logs = running.logs();
    expect(logs.length).toBeGreaterThan(0);
    expect(logs).not.toContain(running.stack.token.slice(-40));
    expect(logs).not.toContain('PRIVATE KEY');
    for (const clip of clips) expect(logs).not.toContain(clip.text.split(' ').slice(0, 3).join(' '));
  });
});

describe('R2 C10 U12 the unmodified openai client speaks', () => {
  const input = 'The meeting starts at ten in the morning. Please send 3 copies of the report, today.';
  const words = 'the meeting starts at ten in the morning please send three copies of the report today';
  const speech = { model: 'voice-en', voice: 'slt', input };

  async function hear(sound: Response, name: string): Promise<string> {
    const { text } = await client.audio.transcriptions.create({
      file: await toFile(await sound.arrayBuffer(), name),
      model,
    });
    return text;
  }

  it.each([
    ['audio/wav', 'speech.wav', {}],
    ['audio/ogg', 'speech.ogg', { response_format: 'opus' }],
    ['audio/wav', 'speech.wav', { input: `<speak><prosody rate="80%" pitch="-10%">${input}</prosody></speak>` }],
  ] as const)('as %s that the recogniser understands', async (type, name, change) => {
    const sound = await client.audio.speech.create({ ...speech, ...change });
    expect(sound.headers.get('content-type')).toBe(type);
    expect(await hear(sound, name)).toBe(words);
  });

  it('books the seconds', async () => {
    const allowance = { audioSecondsPerDay: 1 };
    const apiKey = await running.mint({ tenant: 'spoken', audit: 'strict', scope: 'synthesize', allowance });
    const own = new OpenAI({ apiKey, baseURL: client.baseURL, maxRetries: 0 });
    const refused = async (): Promise<unknown> => {
      const sound = await own.audio.speech.create(speech).catch((error: unknown) => error);
      if (sound instanceof Error) return sound;
      await (sound as Response).arrayBuffer();
      // A second speech is refused, unless a UTC day begins between the two.
      return refused();
    };
    expect(await refused()).toMatchObject({ status: 429, code: 'allowance_seconds' });
  });

  it.each([
    [400, 'field_invalid', { response_format: 'mp3' }],
    [400, 'text_invalid', { input: '<speak>Hello <audio src="x"/></speak>' }],
    [404, 'voice_unknown', { voice: 'alloy' }],
    [400, 'model_unfit', { model }],
    [422, 'text_unspeakable', { input: '…' }],
  ] as const)('is refused with %d %s', async (status, code, change) => {
    const refused = await client.audio.speech.create({ ...speech, ...change }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ status, code });
  });

  it('lists the voices and the elements of SSML that each takes', async () => {
    const { voices } = await client.get<{ voices: { id: string; ssml: string[] }[] }>('/audio/voices');
    expect(voices.map(({ id }) => id)).toEqual(['slt', 'awb']);
    expect(voices[0]?.ssml).toContain('prosody');
  });
});
