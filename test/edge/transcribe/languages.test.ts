import { describe, expect, it } from 'vitest';
import { final, segment } from '../../fake/agent.ts';
import { readRefusal, startAgent, upload } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

const unique = () => `model-${crypto.randomUUID().slice(0, 8)}`;
const french = () => makeToken({ languages: ['fr'] });

describe('C4 the languages of a token', () => {
  it.each([undefined, 'auto', ''])('are no way around by language=%s', async (language) => {
    const model = unique();
    const agent = await startAgent(model);
    const fields = [['model', model] as const, ...(language === undefined ? [] : [['language', language] as const])];
    expect(await readRefusal(await upload({ token: await french(), fields }))).toEqual({
      status: 403,
      code: 'language_forbidden',
      message: 'The token does not allow the language "en".',
    });
    expect(agent.requests).toBe(0);
  });

  it('choose among the pools of a model', async () => {
    const model = unique();
    const [english, both] = [
      await startAgent(model),
      await startAgent(model, { pool: 'eks-test', languages: ['en', 'fr'] }),
    ];
    both.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [model] } };
      yield segment(0, 'bonjour');
      yield { ...final(1), language: 'fr' };
    };
    for (let n = 0; n < 4; n += 1) {
      expect((await upload({ token: await french(), fields: [['model', model]] })).status).toBe(200);
    }
    expect([english.requests, both.requests]).toEqual([0, 4]);
  });

  it.each(['false', 'true'])('hold for what was heard, too (stream=%s)', async (stream) => {
    const model = unique();
    const agent = await startAgent(model, { languages: ['en', 'fr'] });
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [model], stream: [stream] } };
      yield final(0);
    };
    const answer = await upload({ token: await french(), fields: [['model', model]] });
    const text = await answer.text();
    expect(text).toContain('"code":"language_forbidden"');
    expect(text).not.toContain('transcript.text.done');
    if (stream === 'false') expect(answer.status).toBe(403);
  });

  it('a header and a form that mean the same agree', async () => {
    const model = unique();
    await startAgent(model);
    const fields = [['model', model] as const, ['language', 'en-US'] as const];
    const headers = { 'x-auricle-model': model, 'x-auricle-language': 'en' };
    expect((await upload({ fields, headers })).status).toBe(200);
  });
});

describe('C6 an agent that cannot open the seal', () => {
  it.each(['seal_broken', 'ticket_invalid'])('is left out after some %s', async (reason) => {
    const model = unique();
    const [broken, sound] = [await startAgent(model), await startAgent(model, { pool: 'eks-test' })];
    broken.plain = () => Response.json({ reason }, { status: 403 });
    for (let n = 0; n < 60; n += 1) await (await upload({ fields: [['model', model]] })).text();
    const before = broken.requests;
    for (let n = 0; n < 10; n += 1) await (await upload({ fields: [['model', model]] })).text();
    expect(broken.requests).toBe(before);
    expect(sound.requests).toBeGreaterThan(0);
  });
});
