import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTextReader } from '../../../../infra/pool/agent/asr/text/text-reader.ts';
import type { Engine } from '../../../../infra/pool/agent/engine/engine.ts';
import { alignWords } from '../../../../infra/pool/agent/engine/openai/align.ts';
import { createListing } from '../../../../infra/pool/agent/engine/openai/list-models.ts';
import { createSpeechServer } from '../../../../infra/pool/agent/engine/openai/speech-server.ts';
import { readTranscript } from '../../../../infra/pool/agent/engine/openai/transcript.ts';
import { ENGINE_MS } from '../../../../infra/pool/agent/settings/limits.ts';
import { nameOfId, type SpeechServerSettings } from '../../../../infra/pool/agent/settings/speech-server.ts';
import { fp32Tensor, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { publicText } from '../../../../shared/refusal.ts';
import { ok } from '../../../../shared/result.ts';
import { formatOf, type SpeechServer, startSpeechServer } from '../../../fake/speech-server.ts';
import { textTensor } from '../../../fake/text-engine.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'auricle-speech-'));
const keyFile = path.join(folder, 'key');
let server: SpeechServer;
const engines: Engine[] = [];
beforeAll(async () => {
  writeFileSync(keyFile, 'secret-key\n');
  server = await startSpeechServer();
});
beforeEach(() => {
  server.seen.length = 0;
  server.answer = () => undefined;
});
afterAll(async () => {
  for (const engine of engines) engine.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

function open(changes: Partial<SpeechServerSettings> = {}): Engine {
  const settings = { url: `${server.url}/v1`, models: [], languages: ['en-GB'], keyFile: undefined, ...changes };
  engines.push(createSpeechServer(settings, 2));
  return engines.at(-1) as Engine;
}

const infer = (engine: Engine, seconds = 0.8, prompt: readonly Tensor[] = []) =>
  engine.infer({
    ...{ model: 'Acme/Whisper-Tiny.en', outputs: ['TEXT'], priority: 0, timeoutMicros: 0 },
    inputs: [fp32Tensor('AUDIO', new Float32Array(16_000 * seconds), [1, 16_000 * seconds]), ...prompt],
    signal: AbortSignal.timeout(20_000),
  });

/** Words of an answer as the recogniser reads them. */
function heard(body: unknown) {
  const tensors = readTranscript(new TextEncoder().encode(JSON.stringify(body))) ?? [];
  const reader = createTextReader(['TEXT', 'WORD_TIMES', 'WORD_CONFIDENCE']);
  const read = reader.read(new Map(tensors.map((tensor) => [tensor.name, tensor])), 2);
  return (
    read.ok &&
    read.value.words.map(({ word, startFrame, endFrame, confidence }) => [word, startFrame, endFrame, confidence])
  );
}

describe('U2 words of a transcript get times', () => {
  it('from words without punctuation and from parts of words', () => {
    const spans = [
      { text: ' dr', start: 0, end: 0.2 },
      { text: 'who', start: 0.2, end: 0.5 },
      { text: " isn't", start: 0.6, end: 1 },
    ];
    expect(alignWords(['Dr.', 'Who', '-', "isn't?"], spans)).toEqual([
      { start: 0, end: 0.2 },
      { start: 0.2, end: 0.5 },
      { start: 0.5, end: 0.5 },
      { start: 0.6, end: 1 },
    ]);
    expect(alignWords(['Doctor', 'Who'], spans)).toBeUndefined();
  });

  it.each([
    [
      'OpenAI',
      {
        text: 'Hi you.',
        words: [
          { word: 'Hi', start: 0, end: 0.5 },
          { word: 'you', start: 0.5, end: 1 },
        ],
      },
      [
        ['Hi', 0, 500, 1],
        ['you.', 500, 1_000, 1],
      ],
    ],
    [
      'whisper.cpp',
      {
        text: ' Hi\n',
        segments: [
          { text: ' Hi', start: 0, end: 1, words: [{ word: ' Hi', start: 0.25, end: 0.5, probability: 0.5 }] },
        ],
      },
      [['Hi', 250, 500, 0.5]],
    ],
    [
      'vLLM',
      { text: 'ab cd', words: null, segments: [{ text: ' ab cd', start: 1, end: 2, avg_logprob: 0 }] },
      [
        ['ab', 1_000, 1_500, 1],
        ['cd', 1_500, 2_000, 1],
      ],
    ],
    [
      'text alone',
      { text: 'ab c' },
      [
        ['ab', 0, 500, 1],
        ['c', 1_200, 1_600, 1],
      ],
    ],
    [
      'words that are others',
      { text: 'ab c', words: [{ word: 'x', start: 0, end: 1 }] },
      [
        ['ab', 0, 500, 1],
        ['c', 1_200, 1_600, 1],
      ],
    ],
    ['silence', { text: '', words: [], segments: [] }, []],
  ])('as %s tells them', (_, body, words) => {
    expect(heard(body)).toEqual(words);
  });
});

describe('U2 a speech server in place of the engine', () => {
  it('U5 gets the words that a request names as its prompt', async () => {
    const engine = open();
    await infer(engine, 0.8, [textTensor('PROMPT', 'Kowalski, Zyrtec')]);
    await infer(engine, 0.8, [textTensor('PROMPT', '')]);
    const prompts = server.seen.map(({ fields }) =>
      fields.filter(([name]) => name === 'prompt').map(([, text]) => text),
    );
    expect(prompts).toEqual([['Kowalski, Zyrtec'], []]);
  });

  it('gets a WAV file and the only language, and gives text and times', async () => {
    const outcome = await infer(open());
    expect(outcome.ok && [...outcome.value.keys()]).toEqual(['TEXT', 'WORD_TIMES']);
    const [{ fields, seconds, authorization } = { fields: [] }] = server.seen;
    expect(seconds).toBe(0.8);
    expect(Object.fromEntries(fields)).toMatchObject({ model: 'Acme/Whisper-Tiny.en', language: 'en' });
    expect(authorization).toBeUndefined();
  });

  it.each([[['en', 'de']], [['und']]])('is sent its API key, and no language for %j', async (languages) => {
    await infer(open({ keyFile, languages }));
    expect(server.seen[0]?.authorization).toBe('Bearer secret-key');
    expect(server.seen[0]?.fields.some(([name]) => name === 'language')).toBe(false);
  });

  it('steps down to a form of answer that it knows, once', async () => {
    const engine = open();
    server.answer = (form) =>
      formatOf(form) === 'json' ? undefined : { status: 400, body: { error: 'unknown format' } };
    expect(await infer(engine)).toMatchObject({ ok: true });
    expect(await infer(engine)).toMatchObject({ ok: true });
    expect(server.seen.map(formatOf)).toEqual(['verbose_json word segment', 'verbose_json', 'json', 'json']);
  });

  const openAi = { error: { message: 'Audio file is too short.', type: 'invalid_request_error' } };
  it.each([
    [400, openAi, 'engine_failed', 'It says: Audio file is too short.'],
    [422, { detail: [{ loc: ['file'], msg: 'Field required' }] }, 'engine_failed', 'It says: Field required.'],
    [400, { detail: openAi }, 'engine_failed', 'It says: Audio file is too short.'],
    [401, { error: { message: 'Incorrect key: secret-key' } }, undefined, undefined],
    [404, { error: 'no model' }, undefined, undefined],
    [500, { error: 'out of memory' }, undefined, undefined],
    [429, openAi, 'pool_busy', 'The pool is busy.'],
    [503, {}, 'pool_busy', 'The pool is busy.'],
  ])('is refused with its message or its wait after status %i', async (status, body, reason, text) => {
    server.answer = () => ({ status, body, headers: { 'retry-after': '7' } });
    const outcome = await infer(open());
    const refusal = outcome.ok ? undefined : outcome.refusal;
    expect([outcome.ok, refusal?.reason]).toEqual([false, reason]);
    expect(refusal && publicText(refusal)).toEqual(text && expect.stringContaining(text));
    expect(refusal?.retryAfter).toBe(reason === 'pool_busy' ? 7 : undefined);
    expect(!outcome.ok && outcome.retryable).toBe(status >= 429);
    expect(JSON.stringify(outcome)).not.toContain('secret-key');
  });

  it('is no failure of the agent when its connection breaks', async () => {
    const engine = open({ url: 'http://127.0.0.1:9/v1' });
    expect(await infer(engine)).toEqual({ ok: false, retryable: true, detail: 'engine ECONNREFUSED' });
    expect(await engine.ready(AbortSignal.timeout(1_000))).toBe(false);
  });

  it.each([
    [200, undefined, true],
    [404, 'http_404', true],
    [401, 'http_401', false],
    [503, 'http_503', false],
  ])('is ready by its list of models: %i', async (status, reason, named) => {
    const before = server.models;
    server.models = { ...before, status };
    const reasons: string[] = [];
    const ready = await open().ready(AbortSignal.timeout(1_000), (why) => reasons.push(why));
    expect([ready, reasons[0]]).toEqual([status === 200, reason]);
    const engine = open({ models: [{ id: 'whisper-1', name: 'whisper-1' }] });
    expect(await engine.ready(AbortSignal.timeout(1_000))).toBe(named);
    expect(await engine.modelReady('whisper-1', AbortSignal.timeout(1_000))).toBe(named);
    server.models = before;
  });

  it('keeps its list while one inference may keep it from answering', async () => {
    let [now, answeredAt] = [0, 0];
    let code: string | undefined;
    const body = new TextEncoder().encode(JSON.stringify({ data: [{ id: 'tiny' }] }));
    async function request() {
      if (code !== undefined) throw Object.assign(new Error(code), { code });
      return { status: 200, headers: {}, body };
    }
    const listing = createListing({ request, named: [], now: () => now, answeredAt: () => answeredAt });
    expect(await listing()).toEqual(ok(['tiny']));
    code = 'ABORT_ERR';
    now = ENGINE_MS - 1;
    expect(await listing()).toEqual(ok(['tiny']));
    now = ENGINE_MS;
    expect(await listing()).toMatchObject({ ok: false, refusal: { detail: 'timeout' } });
    answeredAt = 1;
    expect(await listing()).toEqual(ok(['tiny']));
    [code, now] = ['ECONNREFUSED', 0];
    expect(await listing()).toMatchObject({ ok: false, refusal: { detail: 'ECONNREFUSED' } });
  });

  it('names a model by the last part of its id', () => {
    expect(['Systran/faster-whisper-tiny.en', 'whisper-1', '_x y/', '..'].map(nameOfId)).toEqual([
      'faster-whisper-tiny.en',
      'whisper-1',
      'x-y',
      '',
    ]);
  });
});
