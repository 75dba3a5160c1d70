import OpenAI, { toFile } from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import { wav } from '../wav.ts';
import { clipBytes, clipLike } from './clips.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

let running: Shared;

beforeAll(async () => {
  running = await join();
}, 60_000);

const speech = () => clipBytes(clipLike('.wav'));

interface Params {
  readonly token?: string | undefined;
  readonly bytes?: Uint8Array<ArrayBuffer>;
  readonly fields?: Record<string, string>;
}

async function ask({ token, bytes = speech(), fields = { model: 'reference-en' } }: Params): Promise<Response> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', new Blob([bytes]), 'speech.wav');
  return fetch(`${running.stack.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    body: form,
  });
}

async function refusalOf(answer: Response) {
  const body = (await answer.json()) as { error: { message: string; type: string; code: string } };
  expect(answer.headers.get('x-request-id')).toBeTruthy();
  return { status: answer.status, code: body.error.code, message: body.error.message };
}

describe('C4 A21 refused callers', () => {
  const rows: [string, (mint: Shared['mint']) => Promise<string | undefined>, number, string, string][] = [
    [
      'no token',
      async () => undefined,
      401,
      'token_missing',
      'No token was sent. Send "Authorization: Bearer <token>".',
    ],
    ['not a token', async () => 'nonsense', 401, 'token_invalid', 'The token is not valid here.'],
    [
      'a forged token',
      async (mint) => `${(await mint()).slice(0, -6)}AAAAAA`,
      401,
      'token_invalid',
      'The token is not valid here.',
    ],
    ['an expired token', (mint) => mint({}, -120), 401, 'token_expired', 'The token has expired.'],
    [
      'a token for others',
      (mint) => mint({ aud: 'elsewhere' }),
      401,
      'audience_wrong',
      'The token was issued for another audience.',
    ],
    [
      'a token without the scope',
      (mint) => mint({ scope: 'models' }),
      403,
      'scope_missing',
      'The token lacks the scope "transcribe".',
    ],
    [
      'a token for a zone without pools',
      (mint) => mint({ zones: ['cn'] }),
      403,
      'residency_mismatch',
      'The model is not served in a region the token allows.',
    ],
  ];
  it.each(rows)('%s', async (_, makeToken, status, code, message) => {
    const answer = await ask({ token: await makeToken(running.mint) });
    expect(await refusalOf(answer)).toEqual({ status, code, message });
    expect(answer.headers.get('x-should-retry')).toBe('false');
  });

  it('a tenant over its allowance, with advice when to come back', async () => {
    const token = await running.mint({ tenant: 'small', allowance: { requestsPerMinute: 1 } });
    expect((await ask({ token })).status).toBe(200);
    const second = await ask({ token });
    expect(await refusalOf(second)).toMatchObject({ status: 429, code: 'allowance_requests' });
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('C6 unservable requests', () => {
  it('an unknown model', async () => {
    const token = await running.mint();
    expect(await refusalOf(await ask({ token, fields: { model: 'whisper-9' } }))).toEqual({
      status: 404,
      code: 'model_unknown',
      message: 'The model "whisper-9" does not exist here. Available: reference-en, reference-en-fp16.',
    });
  });

  it('a language the model does not know', async () => {
    const answer = await ask({ token: await running.mint(), fields: { model: 'reference-en', language: 'de' } });
    expect(await refusalOf(answer)).toMatchObject({ status: 400, code: 'language_unknown' });
  });

  it('a response format that does not exist', async () => {
    const answer = await ask({
      token: await running.mint(),
      fields: { model: 'reference-en', response_format: 'docx' },
    });
    expect(await refusalOf(answer)).toMatchObject({ status: 400, code: 'field_invalid' });
  });

  it('a body that is not a form', async () => {
    const answer = await fetch(`${running.stack.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await running.mint()}`, 'content-type': 'audio/wav' },
      body: speech(),
    });
    expect(await refusalOf(answer)).toEqual({
      status: 415,
      code: 'content_type_wrong',
      message: 'The body must be multipart/form-data.',
    });
  });

  it('a body of 200 MB, without reading it', async () => {
    const answer = await fetch(`${running.stack.url}/v1/audio/transcriptions?model=reference-en`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await running.mint()}`, 'content-type': 'multipart/form-data; boundary=x' },
      body: new Blob([new Uint8Array(200_000_000)]),
    });
    expect(await refusalOf(answer)).toMatchObject({ status: 413, code: 'body_too_large' });
  });

  it('an unknown address, and a method it does not support', async () => {
    const nowhere = await fetch(`${running.stack.url}/v1/nothing`);
    expect(await refusalOf(nowhere)).toMatchObject({ status: 404, code: 'route_unknown' });
    const get = await fetch(`${running.stack.url}/v1/audio/transcriptions`);
    expect(await refusalOf(get)).toMatchObject({ status: 405, code: 'method_wrong' });
  });
});

describe('A21 unreadable audio', () => {
  const second = new Int16Array(16_000);
  const rows: [string, Uint8Array<ArrayBuffer>, number, string][] = [
    ['an empty file', new Uint8Array(0), 400, 'audio_empty'],
    ['a truncated WAV', wav(second, 16_000, 64_000), 400, 'audio_truncated'],
    ['a WAV of 0 Hz', wav(second, 0), 400, 'audio_invalid'],
    ['a WAV of 4 kHz', wav(second, 4_000), 415, 'audio_unsupported'],
    ['text', new TextEncoder().encode('this is not audio at all, it is a sentence'), 415, 'audio_unsupported'],
    [
      'an MP4',
      new Uint8Array([0, 0, 0, 24, ...new TextEncoder().encode('ftypM4A isom'), ...new Uint8Array(200)]),
      415,
      'audio_unsupported',
    ],
    ['a WAV that ends inside its header', wav(second).slice(0, 30), 400, 'audio_truncated'],
  ];
  it.each(rows)('%s', async (_, bytes, status, code) => {
    expect(await refusalOf(await ask({ token: await running.mint(), bytes }))).toMatchObject({ status, code });
  });

  it('the official client sees its own error class, once', async () => {
    const client = new OpenAI({ apiKey: await running.mint(), baseURL: `${running.stack.url}/v1` });
    const file = await toFile(new Uint8Array(0), 'empty.wav');
    const call = client.audio.transcriptions.create({ file, model: 'reference-en' });
    await expect(call).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    await expect(call).rejects.toMatchObject({
      code: 'audio_empty',
      message: expect.stringContaining('The file is empty.'),
    });
  });
});
