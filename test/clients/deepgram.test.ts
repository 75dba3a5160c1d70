import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clipLike, clipPath } from '../stack/clips.ts';
import { join } from '../stack/join.ts';
import type { Shared } from '../stack/running.ts';
import { wav } from '../wav.ts';
import { type Python, startPython } from './python.ts';

let running: Shared;
let deepgram: Python;

beforeAll(async () => {
  running = await join();
  deepgram = startPython('deepgram_calls', { EDGE: running.stack.url, TOKEN: running.stack.token });
});
afterAll(() => deepgram?.end());

const spoken = clipLike('balance.wav');
const file = clipPath(spoken);
const call = <T>(name: string, given: Record<string, unknown> = {}) => deepgram.call<T>(name, given);

interface Alternative {
  readonly transcript: string;
  readonly words: readonly { readonly word: string; readonly start: number; readonly end: number }[];
}
interface Message {
  readonly type: string;
  readonly is_final?: boolean;
  readonly channel?: { readonly alternatives: readonly Alternative[] };
}
interface Listened {
  readonly messages: readonly Message[];
  readonly errors: readonly string[];
  readonly ended: boolean;
}

const wordsOf = ({ messages }: Listened): string =>
  messages
    .filter(({ type, is_final }) => type === 'Results' && is_final)
    .map(({ channel }) => channel?.alternatives[0]?.transcript ?? '')
    .filter(Boolean)
    .join(' ');

describe('C10 R1 deepgram-sdk for Python, unmodified, transcribes', () => {
  it('a recording, with times of every word', async () => {
    const answer = await call<{ results: { channels: { alternatives: Alternative[] }[] } }>('transcribe', { file });
    const [best] = answer.results.channels[0]?.alternatives ?? [];
    expect(best?.transcript).toBe(spoken.text);
    expect(best?.words.map(({ word }) => word).join(' ')).toBe(spoken.text);
  });

  it.each([
    ['a wrong token', 401],
    ['an unknown model', 404],
  ])('%s is an error of the client', async (what, status) => {
    const refused = await call<{ status: number; body: { err_code: string } }>('refused', { what });
    expect(refused.status).toBe(status);
    expect(refused.body.err_code).toMatch(/\w/);
  });
});

describe('C10 R1 deepgram-sdk for Python, unmodified, listens live', () => {
  it('interim results, final ones, metadata, and an orderly end', async () => {
    const heard = await call<Listened>('listen', { file, vad_events: true });
    expect(wordsOf(heard)).toBe(spoken.text);
    expect(heard.messages.some(({ type, is_final }) => type === 'Results' && !is_final)).toBe(true);
    expect(heard.messages.map(({ type }) => type)).toEqual(expect.arrayContaining(['SpeechStarted', 'Results']));
    expect(heard.messages.at(-1)?.type).toBe('Metadata');
    expect(heard).toMatchObject({ errors: [], ended: true });
  });

  it('A21 two callers of one client object apart, while one is silent', async () => {
    const other = clipLike('weather.wav');
    const callers = await call<Listened[]>('listen_beside', { file, other: clipPath(other) });
    const [first, ...second] = callers.map(wordsOf);
    expect([first, ...new Set(second)]).toEqual([spoken.text, other.text]);
    expect(callers.every(({ errors, ended }) => ended && errors.length === 0)).toBe(true);
  });

  it('with a token of a minute instead of a key', async () => {
    const { access_token: token } = await call<{ access_token: string }>('grant');
    expect(wordsOf(await call<Listened>('listen', { file, token }))).toBe(spoken.text);
  });

  it('a wrong key refuses the handshake, which is not tried again', async () => {
    expect(await call('listen_refused')).toEqual({ status: 401, error: expect.stringMatching(/token/) });
  });
});

describe('R2 C10 deepgram-sdk for Python, unmodified, speaks', () => {
  const text = 'The meeting starts at ten in the morning.';

  async function hear(sound: Uint8Array): Promise<string | undefined> {
    const folder = mkdtempSync(path.join(tmpdir(), 'auricle-speech-'));
    writeFileSync(path.join(folder, 'speech.wav'), sound);
    const given = { file: path.join(folder, 'speech.wav') };
    const answer = await call<{ results: { channels: { alternatives: Alternative[] }[] } }>('transcribe', given);
    rmSync(folder, { recursive: true });
    return answer.results.channels[0]?.alternatives[0]?.transcript;
  }

  it('in one request', async () => {
    const sound = await call<string>('speak', { text, model: 'voice-en', encoding: 'linear16' });
    expect(await hear(Buffer.from(sound, 'hex'))).toBe('the meeting starts at ten in the morning');
  });

  it('on a WebSocket, flush by flush', async () => {
    const live = { texts: [text, text], model: 'voice-en' };
    const { types, sound } = await call<{ types: string[]; sound: string }>('speak_live', live);
    expect(types).toEqual(['Metadata', 'Flushed', 'Flushed']);
    const samples = new Int16Array(Uint8Array.from(Buffer.from(sound, 'hex')).buffer);
    const words = 'the meeting starts at ten in the morning';
    expect(await hear(wav(samples))).toBe(`${words} ${words}`);
  });
});
