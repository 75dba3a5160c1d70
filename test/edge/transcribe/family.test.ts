import { describe, expect, it } from 'vitest';
import { SNAPSHOT_AGE_MS } from '../../../edge/routing/snapshot.ts';
import { type FakeAgent, final, REVISION, type Script, segment } from '../../fake/agent.ts';
import { ask, passTime, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

const MiB = 1024 * 1024;
/** Bytes of a recording that the edge does not buffer whole. */
const LONG = 3 * MiB;

/** A family of its own: an English agent that detects, and a Spanish one elsewhere. */
async function startFamily() {
  const family = `family-${crypto.randomUUID().slice(0, 8)}`;
  const member = (language: string) => ({ name: `${family}-${language}`, family, languages: [language] });
  const detector = { name: `${family}-id`, task: 'infer' as const, detects: true as const, languages: ['en', 'es'] };
  const english = await startAgent(`${family}-a`, { beside: [member('en'), detector] });
  const spanish = await startAgent(`${family}-b`, { pool: 'eks-test', beside: [member('es')] });
  english.script = misdirect();
  spanish.script = spoken('hola', family);
  return { family, english, spanish };
}

const misdirect = (): Script =>
  async function* (received) {
    await received.read();
    yield { type: 'refusal', reason: 'misdirected', params: { language: 'es', confidence: 0.97 } };
  };

const spoken = (text: string, model: string): Script =>
  async function* (received) {
    await received.all();
    yield { type: 'form', fields: { model: [model], response_format: ['verbose_json'] } };
    yield segment(0, text);
    yield { ...final(1), language: 'es' };
  };

/** Sends a recording that the edge does not buffer whole, the model before it. */
async function listen(family: string): Promise<Response> {
  const headers = { authorization: `Bearer ${await makeToken()}`, 'content-type': 'audio/wav' };
  return ask(`/v1/listen?model=${family}`, { method: 'POST', headers, body: new Uint8Array(LONG) });
}

function cut(agent: FakeAgent): void {
  agent.plain = () => Promise.reject(new TypeError('Network connection lost.'));
}

describe('C6 a recording for a family', () => {
  it('goes to the member of its language without detection', async () => {
    const { family, english, spanish } = await startFamily();
    const answer = await upload({ fields: [['model', family] as const, ['language', 'es'] as const] });
    expect(await answer.json()).toMatchObject({ text: 'hola' });
    expect(answer.headers.get('x-auricle-model')).toBe(`${family}-es`);
    expect(english.requests).toBe(0);
    expect(spanish.seen[0]?.head).toMatchObject({ model: `${family}-es`, language: 'es' });
    expect(spanish.seen[0]?.head).not.toHaveProperty('detect');
  });

  it('moves once to the member of the detected language', async () => {
    const { family, english, spanish } = await startFamily();
    const answer = await upload({ fields: [['model', family] as const] });
    expect(await answer.json()).toMatchObject({ text: 'hola', language: 'spanish', language_confidence: 0.97 });
    expect(answer.headers.get('x-auricle-model')).toBe(`${family}-es`);
    expect(english.seen[0]?.head).toMatchObject({ model: `${family}-en`, detect: true });
    expect(spanish.seen[0]?.head).toMatchObject({ model: `${family}-es`, language: 'es' });
    expect(spanish.seen[0]?.ticket).toMatchObject({ model: `${family}-es`, revision: REVISION });
    expect([english.requests, spanish.requests]).toEqual([1, 1]);
  });

  it('may be named in the address instead of the form', async () => {
    const { family, spanish } = await startFamily();
    spanish.script = spoken('hola', `${family}-es`);
    const headers = { authorization: `Bearer ${await makeToken()}`, 'content-type': 'audio/wav' };
    const address = `/v1/listen?model=${family}&detect_language=true`;
    const answer = await ask(address, { method: 'POST', headers, body: new Uint8Array(64) });
    expect(await answer.json()).toMatchObject({
      metadata: { model_info: expect.objectContaining({}) },
      results: { channels: [{ detected_language: 'es', language_confidence: 0.97 }] },
    });
  });

  it.each([
    [
      'a form',
      async (family: string) => upload({ fields: [['model', family] as const, ['language', 'en, es'] as const] }),
    ],
    [
      'an address',
      async (family: string) => {
        const headers = { authorization: `Bearer ${await makeToken()}`, 'content-type': 'audio/wav' };
        const address = `/v1/listen?model=${family}&detect_language=en&detect_language=es`;
        return ask(address, { method: 'POST', headers, body: new Uint8Array(64) });
      },
    ],
  ])('R3 sends the list of languages in %s to the agent that detects', async (_, send) => {
    const { family, english } = await startFamily();
    expect((await send(family)).status).toBe(200);
    expect(english.seen[0]?.head).toMatchObject({ detect: true, languages: ['en', 'es'] });
  });

  it('moves within the languages of the token', async () => {
    const { family, spanish } = await startFamily();
    const member = { name: `${family}-fr`, family, languages: ['fr'] };
    await startAgent(`${family}-c`, { beside: [member] });
    const token = await makeToken({ languages: ['en', 'fr'] });
    const refused = await readRefusal(await upload({ token, fields: [['model', family] as const] }));
    expect(refused).toMatchObject({ code: 'language_forbidden' });
    expect(spanish.requests).toBe(0);
  });

  it.each([
    ['is away', 503, 'no_pool', (agent: FakeAgent) => agent.send(agent.report({ engineReady: false }))],
    ['does not answer', 502, 'pool_lost', cut],
  ])('is refused as one with a named language when its agent %s', async (_, status, code, fail) => {
    const { family, spanish } = await startFamily();
    await fail(spanish);
    await spanish.settled();
    passTime(SNAPSHOT_AGE_MS);
    const named = await upload({ fields: [['model', family] as const, ['language', 'es'] as const] });
    const detected = await upload({ fields: [['model', family] as const] });
    const refusal = await readRefusal(named);
    expect(refusal).toMatchObject({ status, code });
    expect(await readRefusal(detected)).toEqual(refusal);
  });

  it('is held after its first MiB until the agent keeps it', async () => {
    const { family, english, spanish } = await startFamily();
    english.script = async function* (received) {
      for (let bytes = 0; bytes < MiB / 2; ) bytes += (await received.read())?.byteLength ?? MiB;
      yield { type: 'refusal', reason: 'misdirected', params: { language: 'es', confidence: 0.97 } };
    };
    const answer = await listen(family);
    expect([answer.status, answer.headers.get('x-auricle-model')]).toEqual([200, `${family}-es`]);
    expect([english.requests, spanish.requests]).toEqual([1, 1]);
  });

  it('is sent on once the agent keeps it', async () => {
    const { family, english } = await startFamily();
    english.script = async function* (received) {
      await received.read();
      yield { type: 'keepalive' };
      yield* spoken('hello', family)(received);
    };
    expect((await listen(family)).status).toBe(200);
  });

  it('is refused with its language when too much of it was sent', async () => {
    const { family, english, spanish } = await startFamily();
    english.script = async function* (received) {
      await received.all();
      yield { type: 'refusal', reason: 'misdirected', params: { language: 'es', confidence: 0.97 } };
    };
    const refused = await readRefusal(
      await upload({ fields: [['model', family] as const], file: new Uint8Array(LONG) }),
    );
    expect(refused).toEqual({
      status: 400,
      code: 'language_needed',
      message: 'Send the field "language": the speech is in "es", which was known too late to choose its model.',
    });
    expect(spanish.requests).toBe(0);
  });

  it('tells the two likeliest languages when neither is certain', async () => {
    const { family, english } = await startFamily();
    english.script = async function* (received) {
      await received.all();
      const params = { first: 'en', firstConfidence: 0.5, second: 'es', secondConfidence: 0.4 };
      yield { type: 'refusal', reason: 'language_uncertain', params };
    };
    expect(await readRefusal(await upload({ fields: [['model', family] as const] }))).toEqual({
      status: 400,
      code: 'language_uncertain',
      message: 'The language is not certain: "en" (0.5) or "es" (0.4). Send the field "language".',
    });
  });

  it('loses nothing when the detecting agent dies', async () => {
    const { family, english, spanish } = await startFamily();
    const member = { name: `${family}-en`, family, languages: ['en'] };
    const detector = { name: `${family}-id`, task: 'infer' as const, detects: true as const, languages: ['en', 'es'] };
    const other = await startAgent(`${family}-d`, { pool: 'aks-other', beside: [member, detector] });
    other.script = misdirect();
    english.script = async function* () {
      yield 'cut';
    };
    for (let n = 0; n < 4; n += 1) {
      expect(await (await upload({ fields: [['model', family] as const] })).json()).toMatchObject({ text: 'hola' });
    }
    expect([other.requests, spanish.requests]).toEqual([4, 4]);
  });

  it('is listed with its members', async () => {
    const { family } = await startFamily();
    const headers = { authorization: `Bearer ${await makeToken()}` };
    const { data } = (await (await ask('/v1/models', { headers })).json()) as { data: Record<string, unknown>[] };
    expect(data.find(({ id }) => id === family)).toMatchObject({
      members: [`${family}-en`, `${family}-es`],
      languages: ['en', 'es'],
    });
    expect(data.find(({ id }) => id === `${family}-en`)).toMatchObject({ family });
  });
});
