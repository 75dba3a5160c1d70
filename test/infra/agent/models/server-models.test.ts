import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, startAgent } from '../../../../infra/pool/agent/agent.ts';
import type { ModelState } from '../../../../infra/pool/agent/engine/engine.ts';
import { createServerModels } from '../../../../infra/pool/agent/models/server-models.ts';
import { readSettings } from '../../../../infra/pool/agent/settings/settings.ts';
import { ok } from '../../../../shared/result.ts';
import { askShort, type FakeEdge, startFakeEdge } from '../../../fake/edge.ts';
import { type SpeechServer, startSpeechServer } from '../../../fake/speech-server.ts';
import { dialLink } from '../../../fake/stream-link.ts';
import { audioForm, joinSamples, multipart, silence, voice, wavFile } from '../fixtures.ts';
import { makeEnvironment } from '../start-agent.ts';
import { linear16 } from '../stream/start-stream.ts';

const MODEL = 'whisper-tiny.en';
const folder = mkdtempSync(path.join(tmpdir(), 'auricle-server-models-'));
const lines: string[] = [];
let edge: FakeEdge;
let server: SpeechServer;
let agent: Agent;
let env: Record<string, string>;

beforeAll(async () => {
  [edge, server] = await Promise.all([startFakeEdge(), startSpeechServer()]);
  const { AURICLE_MODELS: _, ...rest } = await makeEnvironment(folder, edge);
  env = { ...rest, AURICLE_ENGINE: `openai:${server.url}`, AURICLE_ENGINE_LANGUAGES: 'en' };
  agent = await startAgent(readSettings(env), { write: (line) => lines.push(line) });
});
afterAll(async () => {
  await agent?.stop();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const call = () => ({ url: agent.url, agent: 'agent-1', attestation: agent.keys.current().token, edge });
const spoken = wavFile(joinSamples(silence(0.5), voice(1), silence(1)));
const transcribe = () =>
  askShort({
    ...{ ...call(), head: { model: MODEL }, contentType: multipart },
    body: audioForm(spoken, [{ name: 'model', value: MODEL }]),
  });

describe('U2 models of a speech server', () => {
  it('transcribe recordings', async () => {
    const { events } = await transcribe();
    expect(events.find(({ type }) => type === 'segment')).toMatchObject({ text: 'Alpha bravo charlie delta.' });
    expect(events.at(-1)).toMatchObject({ type: 'final', language: 'en' });
    expect(server.seen.at(-1)?.fields).toContainEqual(['model', 'Acme/Whisper-Tiny.en']);
  });

  it('transcribe live streams', async () => {
    const link = await dialLink({ ...call(), model: MODEL });
    await link.open({ model: MODEL, options: { interim: true, endpointingMs: false } });
    await link.audio(linear16(voice(2)));
    await link.until(() => link.all('interim').length > 0);
    await link.end();
    await link.event('final');
    expect(link.all('segment').map(({ text }) => text)).toEqual(['Alpha bravo charlie delta echo.']);
  });

  it('refuse a recording with the message of the server, which no log line has', async () => {
    server.answer = () => ({ status: 400, body: { error: { message: 'no such voice' } } });
    const { events } = await transcribe();
    server.answer = () => undefined;
    expect(events.at(-1)).toMatchObject({ reason: 'engine_failed', params: { rule: 'no such voice' } });
    expect(lines.join('')).not.toContain('no such voice');
  });

  it('refuse a stream with the message of the server', async () => {
    server.answer = () => ({ status: 400, body: { detail: 'no such voice' } });
    const link = await dialLink({ ...call(), model: MODEL });
    await link.open({ model: MODEL, options: { interim: false, endpointingMs: false } });
    await link.audio(linear16(voice(1)));
    await link.end();
    const refusal = await link.event('refusal');
    server.answer = () => undefined;
    expect(refusal).toMatchObject({ reason: 'engine_failed', params: { rule: 'no such voice' } });
  });

  it('are sent nothing again at once while the server is full', async () => {
    const before = server.seen.length;
    server.answer = () => ({ status: 503, body: {}, headers: { 'retry-after': '7' } });
    const { events } = await transcribe();
    server.answer = () => undefined;
    expect(events.at(-1)).toMatchObject({ reason: 'pool_busy', retryAfter: 7 });
    expect(server.seen.length - before).toBe(1);
  });

  it('serve no tensors', async () => {
    const head = { v: 1, task: 'metadata', model: MODEL };
    const { events } = await askShort({
      ...{ ...call(), head, contentType: 'application/json', body: new Uint8Array(0) },
      read: (plaintext) => JSON.parse(new TextDecoder().decode(plaintext)),
    });
    expect(events.at(-1)).toMatchObject({ reason: 'tensors_unsupported' });
  });

  it('are listed again while the server runs, each name once', async () => {
    const log: string[] = [];
    let states: [string, ModelState][] = [];
    const models = createServerModels({
      engine: { loaded: async () => ok(new Map(states)) },
      settings: { url: '', models: [], languages: ['de', 'en'], keyFile: undefined },
      now: () => 5_000,
      log: (event, fields) => void log.push(`${event} ${fields?.model}`),
    });
    expect(await models.refresh()).toBe(false);
    states = ['b/large', 'a/large', 'tiny'].map((id) => [id, { is: 'ready' }]);
    expect([await models.refresh(), await models.refresh()]).toEqual([true, false]);
    expect(models.served().map(({ engineModel }) => engineModel)).toEqual(['a/large', 'tiny']);
    expect(models.served()[0]?.description).toMatchObject({
      name: 'large',
      task: 'transcribe',
      languages: ['de', 'en'],
    });
    expect(log).toEqual(['model-broken b/large']);
  });
});

describe('settings of a speech server', () => {
  const problems = (changes: Record<string, string | undefined>) => () => readSettings({ ...env, ...changes });

  it('name its models, its address and its key', () => {
    const named = { AURICLE_ENGINE_MODELS: 'whisper-1=Acme/W, B/Tiny', AURICLE_ENGINE_KEY_FILE: '/key' };
    expect(readSettings({ ...env, ...named, AURICLE_ENGINE: 'openai:https://asr.test/x/v1/' }).engine).toEqual({
      ...{ kind: 'openai', url: 'https://asr.test/x/v1', languages: ['en'], keyFile: '/key' },
      models: [
        { id: 'Acme/W', name: 'whisper-1' },
        { id: 'B/Tiny', name: 'tiny' },
      ],
    });
  });

  it('need no signer and no repository in production, where the agent sees no file', () => {
    const signed = /AURICLE_MODEL_SIGNERS|AURICLE_ENGINE_REPOSITORY/;
    expect(problems({ AURICLE_MODE: 'production' })).not.toThrow(signed);
    expect(problems({ AURICLE_MODE: 'production', AURICLE_ENGINE: undefined })).toThrow(signed);
  });

  it.each([
    [{ AURICLE_ENGINE: 'openai:nowhere' }, /^AURICLE_ENGINE is no address[^;]*$/],
    [{ AURICLE_ENGINE_LANGUAGES: undefined }, /AURICLE_ENGINE_LANGUAGES is missing/],
    [{ AURICLE_ENGINE_URL: 'http://127.0.0.1:1' }, /AURICLE_ENGINE_URL goes with another/],
    [{ AURICLE_ENGINE: undefined }, /AURICLE_ENGINE_URL is missing/],
    [{ AURICLE_MODE: 'production', AURICLE_ENGINE: 'openai:http://asr.test' }, /AURICLE_ENGINE must be https/],
  ])('are refused: %o', (changes, problem) => {
    expect(problems(changes)).toThrow(problem);
  });
});
