import OpenAI, { toFile } from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import { join } from './join.ts';
import type { Shared } from './running.ts';

let running: Shared;

beforeAll(async () => {
  running = await join();
}, 60_000);

describe('C4 C6 A21 refusals of the whole stack', () => {
  it('a body of 200 MB, without reading it', async () => {
    const answer = await fetch(`${running.stack.url}/v1/audio/transcriptions?model=reference-en`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await running.mint()}`, 'content-type': 'multipart/form-data; boundary=x' },
      body: new Blob([new Uint8Array(200_000_000)]),
    });
    expect(answer.headers.get('x-request-id')).toBeTruthy();
    expect([answer.status, await answer.json()]).toMatchObject([413, { error: { code: 'body_too_large' } }]);
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
