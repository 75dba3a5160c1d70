import { describe, expect, it } from 'vitest';
import { final, ordinary, segment } from '../../fake/agent.ts';
import { askDirectly, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

/** Rosters outlive a test, so every test has a model that no other agent serves. */
const model = () => `model-${crypto.randomUUID().slice(0, 8)}`;

describe('C10 a transcription in every format', () => {
  it('json', async () => {
    const name = model();
    const agent = await startAgent(name);
    const answer = await upload({ fields: [['model', name]] });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/);
    expect(await answer.json()).toEqual({
      text: 'hello there general kenobi',
      usage: { type: 'duration', seconds: 9 },
    });
    expect(agent.seen[0]?.head).toMatchObject({ v: 1, task: 'transcribe', dialect: 'openai-audio', model: name });
    expect(agent.seen[0]?.ticket).toMatchObject({
      v: 2,
      aud: agent.name,
      tenant: 'acme',
      class: 'default',
      model: name,
      suite: 5,
    });
  });

  it.each([
    ['text', 'text/plain; charset=utf-8', /^hello there general kenobi\n$/],
    ['srt', 'application/x-subrip; charset=utf-8', /^1\n00:00:00,000 --> 00:00:00,900\nhello there\n\n2\n/],
    ['vtt', 'text/vtt; charset=utf-8', /^WEBVTT\n\n00:00:00\.000 --> 00:00:00\.900\nhello there\n\n/],
    ['verbose_json', 'application/json', /"language":"english","duration":8.47/],
  ])('%s', async (format, contentType, pattern) => {
    const name = model();
    await startAgent(name);
    const answer = await upload({
      fields: [
        ['model', name],
        ['response_format', format],
      ],
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe(contentType);
    expect(new TextDecoder().decode(await answer.arrayBuffer())).toMatch(pattern);
  });

  it('stream: a delta for each segment, the whole text, [DONE]', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [name], stream: ['true'] } };
      yield { type: 'keepalive' };
      yield segment(0, 'hello there');
      yield segment(1, 'general kenobi');
      yield final(2);
    };
    const answer = await upload({
      fields: [
        ['model', name],
        ['stream', 'true'],
      ],
    });
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const frames = (await answer.text()).split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'));
    expect(frames.map((frame) => frame.replace('data: ', ''))).toEqual([
      '{"type":"transcript.text.delta","delta":"hello there"}',
      '{"type":"transcript.text.delta","delta":" general kenobi"}',
      '{"type":"transcript.text.done","text":"hello there general kenobi","usage":{"type":"duration","seconds":9}}',
      '[DONE]',
    ]);
  });

  it('stream: an error frame before the cut when the pool is lost', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [name], stream: ['true'] } };
      yield segment(0, 'hello there');
      yield 'cut';
    };
    const text = await (await upload({ fields: [['model', name]] })).text();
    expect(text).toContain('"code":"pool_lost"');
    expect(text).not.toContain('[DONE]');
  });
});

describe('C6 another agent takes over', () => {
  it('when the first is unreachable', async () => {
    const name = model();
    const [one, other] = [await startAgent(name), await startAgent(name, { pool: 'eks-test', zone: 'us' })];
    one.plain = other.plain = () => {
      if (one.requests + other.requests > 1) return Response.json({ reason: 'pool_busy' }, { status: 503 });
      throw new TypeError('Network connection lost.');
    };
    expect(await readRefusal(await upload({ fields: [['model', name]] }))).toMatchObject({
      status: 503,
      code: 'pool_busy',
    });
    expect([one.requests, other.requests]).toEqual([1, 1]);
  });

  it('when the first is lost midway, and the body is sent again whole', async () => {
    const name = model();
    const [one, other] = [await startAgent(name), await startAgent(name, { pool: 'eks-test', zone: 'us' })];
    const sizes: number[] = [];
    one.script = other.script = async function* (received) {
      const body = await received.all();
      sizes.push(body.length);
      if (sizes.length > 1) {
        yield* ordinary({ ...received, all: async () => body });
        return;
      }
      yield segment(0, 'from the lost one');
      yield 'cut';
    };
    const answer = await upload({ fields: [['model', name]] });
    expect(await answer.json()).toMatchObject({ text: 'hello there general kenobi' });
    expect(sizes[0]).toBe(sizes[1]);
  });
});

describe('A21 C6 refusals', () => {
  it('an unknown model', async () => {
    await startAgent(model());
    expect(await readRefusal(await upload({ fields: [['model', 'whisper-9']] }))).toEqual({
      status: 404,
      code: 'model_unknown',
      message: expect.stringMatching(/^The model "whisper-9" does not exist here\. Available: .*\.$/),
    });
  });

  it('no token', async () => {
    const answer = await upload({ token: null });
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="auricle"');
    expect(await readRefusal(answer)).toMatchObject({ status: 401, code: 'token_missing' });
  });

  it('over the allowance', async () => {
    const name = model();
    await startAgent(name);
    const token = await makeToken({ tenant: `t-${name}`, allowance: { requestsPerMinute: 1 } });
    expect((await upload({ token, fields: [['model', name]] })).status).toBe(200);
    const second = await upload({ token, fields: [['model', name]] });
    expect(second.headers.get('x-should-retry')).toBe('true');
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await readRefusal(second)).toMatchObject({ status: 429, code: 'allowance_requests' });
  });
});

describe('A20 the answer of a degraded pool', () => {
  const quality = ({ headers }: Response) => [headers.get('x-auricle-degraded'), headers.get('cache-status')];

  it.each([
    ['A20: full quality names no level', {}, {}, [null, null]],
    ['A20: an answer names its level', {}, { degraded: 2 }, ['2', null]],
    ['A20: a stored result is marked', {}, { degraded: 3, cached: true }, ['3', 'auricle; hit']],
    ['A20: a stream names its level before its first frame', { stream: 'true' }, { degraded: 1 }, ['1', null]],
  ] as const)('%s', async (_, fields, degraded, headers) => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      const stream = 'stream' in fields ? { stream: [fields.stream] } : {};
      yield { type: 'form', fields: { model: [name], ...stream }, ...degraded };
      yield segment(0, 'hello there');
      yield final(1);
    };
    const answer = await upload({ fields: [['model', name], ...Object.entries(fields)] });
    expect([answer.status, ...quality(answer)]).toEqual([200, ...headers]);
    expect(await answer.text()).toContain('hello there');
  });

  it('A20: names its level in the answer to a Deepgram client', async () => {
    const name = model();
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [name] }, degraded: 1 };
      yield final(0);
    };
    const headers = { authorization: `Bearer ${await makeToken()}`, 'content-type': 'audio/wav' };
    const request = new Request(`http://edge.test/v1/listen?model=${name}`, { method: 'POST', headers, body: 'RIFF' });
    const { answer, settled } = await askDirectly(request);
    expect([answer.status, ...quality(answer)]).toEqual([200, '1', null]);
    await answer.text();
    await settled();
  });
});
