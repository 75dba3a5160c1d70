import { describe, expect, it } from 'vitest';
import { DEEPGRAM_IDLE_MS } from '../../../edge/protocol/deepgram-listen.ts';
import { STREAM_UNREAD_BYTES } from '../../../edge/stream/unread-limit.ts';
import { createWavReader } from '../../../shared/speech/wav.ts';
import { final, REVISION, segment } from '../../fake/agent.ts';
import { ask, passTime, startAgent } from '../../fake/network.ts';
import { eventually } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { LiveClient, startLateListener, startListener } from '../live-client.ts';
import { passQuietly } from '../stream-listener.ts';

const bearer = async (claims: Record<string, unknown> = {}) => ({ authorization: `Bearer ${await makeToken(claims)}` });
const address = (model: string, more = '') => `/v1/listen?model=${model}&encoding=mulaw&sample_rate=8000${more}`;
const letters = (text: string) => new TextEncoder().encode(text);
const transcript = (message: { readonly [name: string]: unknown }) =>
  (message as { channel?: { alternatives: { transcript: string }[] } }).channel?.alternatives[0]?.transcript;
const finals = (client: LiveClient) =>
  client
    .all('Results')
    .filter(({ is_final }) => is_final)
    .map(transcript);

describe('C10 R1 a Deepgram stream from a client to an agent', () => {
  it('sends the transcript, then Metadata, then 1000', async () => {
    const { name, agentStreams } = await startListener({ interims: true });
    const client = await LiveClient.connect(address(name, '&interim_results=true'), await bearer());
    const id = client.headers.get('dg-request-id');
    expect(id).toBe(client.headers.get('x-request-id'));
    client.send(letters('hello there ')).send(letters('general.')).send({ type: 'KeepAlive' }).send(letters('kenobi'));
    client.send({ type: 'Finalize' });
    expect(transcript(await client.waitFor('Results', ({ from_finalize }) => from_finalize === true))).toBe('kenobi');
    client.send({ type: 'CloseStream' });
    expect(await client.end()).toMatchObject({ code: 1000 });
    expect(finals(client)).toEqual(['hello there general', 'kenobi']);
    expect(client.all('Results').some(({ is_final }) => !is_final)).toBe(true);
    expect(client.messages.at(-1)).toMatchObject({ type: 'Metadata', request_id: id, duration: 0.003 });
    expect(client.binary).toBe(0);
    await eventually(() => agentStreams[0]?.closed);
  });

  it('§3-17 buffers audio before an agent is ready', async () => {
    const { name, agentStreams, letReady } = await startLateListener();
    const client = await LiveClient.connect(address(name), await bearer());
    client.send(letters('early '));
    await eventually(() => agentStreams[0]?.opened);
    client.send(letters('words.'));
    letReady();
    await client.waitFor('Results');
    expect(finals(client)).toEqual(['early words']);
    client.close();
  });

  it('§3-14 closes a client idle for ten seconds, with Deepgram’s code', async () => {
    const { name, agentStreams } = await startListener();
    const client = await LiveClient.connect(address(name), await bearer());
    client.send(letters('hello.'));
    await client.waitFor('Results');
    await passQuietly(DEEPGRAM_IDLE_MS + 1_000, agentStreams[0]);
    const { code, reason } = await client.end();
    expect([code, reason.slice(0, 8)]).toEqual([1011, 'NET-0001']);
    expect(client.messages.at(-1)).toMatchObject({ type: 'Error', code: 'stream_idle' });
  });

  it('a client that floods requests without reading is closed', async () => {
    const { name } = await startListener();
    const client = await LiveClient.connect(address(name), await bearer());
    client.send(letters('hello.'));
    await client.waitFor('Results');
    const most = STREAM_UNREAD_BYTES;
    for (let asked = 0; asked < most / 100 && !client.ended; asked++) client.send('no JSON');
    expect(await client.end()).toMatchObject({ code: 1011, reason: 'NET-0000 reader_slow' });
    const answered = client.all('Error').reduce((bytes, message) => bytes + JSON.stringify(message).length, 0);
    expect(answered).toBeLessThan(most + 1_000);
  });

  it('sound without a header that names its format is refused once, for good', async () => {
    const { name } = await startListener();
    const client = await LiveClient.connect(`/v1/listen?model=${name}`, await bearer());
    client.send(letters('_'.repeat(5_000)));
    expect(await client.end()).toEqual({ code: 1000, reason: 'DATA-0000 audio_live_unsupported' });
    expect(client.messages).toMatchObject([{ type: 'Error', code: 'audio_live_unsupported' }]);
  });
});

/** One `DeepgramClient` object sends one session id with every socket, whichever caller it serves. */
describe('C10 A21 two callers with one x-deepgram-session-id', () => {
  const callers = async () => {
    const { name, agentStreams } = await startListener();
    const headers = { ...(await bearer()), 'x-deepgram-session-id': crypto.randomUUID() };
    return { agentStreams, connect: () => LiveClient.connect(address(name), headers) };
  };
  const documented = ['Results', 'Metadata', 'SpeechStarted', 'UtteranceEnd', 'Error'];
  const finish = async (client: LiveClient) => {
    client.send({ type: 'CloseStream' });
    expect(await client.end()).toMatchObject({ code: 1000 });
    for (const { type } of client.messages) expect(documented).toContain(type);
    return finals(client);
  };

  it.each([
    ['silent', []],
    ['sending KeepAlive', [{ type: 'KeepAlive' }]],
  ])('MUST 38: read only their own words while the first is %s', async (_, keepAlive) => {
    const { connect, agentStreams } = await callers();
    const first = await connect();
    first.send(letters('alpha'));
    for (const message of keepAlive) first.send(message);
    await eventually(() => agentStreams[0]?.position === 5);
    passTime(2_000);
    const second = await connect();
    second.send(letters('bravo.'));
    await second.waitFor('Results');
    first.send(letters(' charlie.'));
    expect(await finish(second)).toEqual(['bravo']);
    expect(await finish(first)).toEqual(['alpha charlie']);
    expect(agentStreams).toHaveLength(2);
  });

  it('MUST 38: a lost connection ends its session; the next starts at zero', async () => {
    const { connect, agentStreams } = await callers();
    const first = await connect();
    first.send(letters('alpha'));
    await eventually(() => agentStreams[0]?.position === 5);
    first.drop();
    // No time passes: the session does not wait for a client that cannot resume.
    await eventually(() => agentStreams[0]?.closed);
    const second = await connect();
    second.send(letters('bravo.'));
    expect(await second.waitFor('Results')).toMatchObject({ start: 0 });
    expect(await finish(second)).toEqual(['bravo']);
  });
});

describe('C10 access to a Deepgram stream', () => {
  it.each(['token', 'bearer'])('a browser, with the sub-protocol %s, which alone is echoed', async (scheme) => {
    const { name } = await startListener();
    const client = await LiveClient.connect(address(name), {
      'sec-websocket-protocol': `${scheme}, ${await makeToken()}, x-deepgram-session-id, ${crypto.randomUUID()}`,
    });
    expect(client.protocol).toBe(scheme);
    client.send(letters('hi.'));
    await client.waitFor('Results');
    client.close();
  });

  it.each(['Token', 'token', 'Bearer', 'bearer'])('a client with %s', async (scheme) => {
    const { name } = await startListener();
    const client = await LiveClient.connect(address(name), { authorization: `${scheme} ${await makeToken()}` });
    client.close();
  });

  it('a short-lived token grants streams and nothing more', async () => {
    const { name } = await startListener();
    const granted = await ask('/v1/auth/grant', { method: 'POST', headers: await bearer() });
    const { access_token } = (await granted.json()) as { access_token: string };
    const client = await LiveClient.connect(address(name), { authorization: `Bearer ${access_token}` });
    client.send(letters('granted.'));
    await client.waitFor('Results');
    client.close();
    const recording = await ask(`/v1/listen?model=${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}` },
      body: letters('x'),
    });
    expect(recording.status).toBe(403);
  });

  it.each([
    ['no token', '', {}, 401, 'INVALID_AUTH', 'token_missing'],
    ['a token in the address', '&token=', {}, 401, 'INVALID_AUTH', 'token_missing'],
    ['a bad token', '', { token: 'a.b.c' }, 401, 'INVALID_AUTH', 'token_invalid'],
    ['too little scope', '', { claims: { scope: 'models' } }, 403, 'INSUFFICIENT_PERMISSIONS', 'scope_missing'],
    [
      'a tenant that seals by itself',
      '',
      { claims: { sealing: 'client' } },
      403,
      'sealing_required',
      'sealing_required',
    ],
    ['a wish for redaction', '&redact=pii', { claims: {} }, 400, 'INVALID_QUERY_PARAMETER', 'field_invalid'],
  ] as const)(
    'with %s is refused at the handshake, which its clients try once',
    async (_, query, wish, status, code, reason) => {
      const valid = await makeToken('claims' in wish ? { ...wish.claims } : {});
      const token = 'token' in wish ? wish.token : 'claims' in wish ? valid : undefined;
      const answer = await ask(address('m', query === '&token=' ? `&token=${valid}` : query), {
        headers: {
          upgrade: 'websocket',
          ...(token && { authorization: `Token ${token}` }),
        },
      });
      expect(answer.status).toBe(status);
      expect(answer.headers.get('dg-error')).toMatch(/^[\x20-\x7e]+$/);
      const id = answer.headers.get('x-request-id');
      expect(answer.headers.get('dg-request-id')).toBe(id);
      expect(await answer.json()).toEqual({
        err_code: code,
        err_msg: answer.headers.get('dg-error'),
        request_id: id,
        reason,
        type: expect.any(String),
      });
    },
  );

  it('a plain GET is refused with upgrade advice', async () => {
    const answer = await ask(address('m'), { headers: await bearer() });
    expect(answer.status).toBe(426);
    expect(await answer.json()).toMatchObject({ reason: 'upgrade_missing' });
  });

  it('§3-19 a stream beyond the limit is refused with the number, retryable', async () => {
    const { name } = await startListener();
    const tenant = `t-${crypto.randomUUID().slice(0, 8)}`;
    const headers = await bearer({ tenant, allowance: { requestsAtOnce: 1 } });
    const first = await LiveClient.connect(address(name), headers);
    first.send(letters('first.'));
    await first.waitFor('Results');
    const second = await LiveClient.connect(address(name), headers);
    const { code, reason } = await second.end();
    expect([code, reason]).toEqual([1011, 'NET-0000 allowance_concurrent']);
    expect(second.messages).toMatchObject([{ type: 'Error', code: 'allowance_concurrent' }]);
    expect(String(second.messages[0]?.description)).toContain('1 are allowed');
    first.send({ type: 'CloseStream' });
    await first.end();
    // The place is free again.
    const third = await LiveClient.connect(address(name), headers);
    third.send(letters('third.'));
    await third.waitFor('Results');
    third.close();
  });

  it('refuses an unknown model at the handshake and names the known ones', async () => {
    const { name } = await startListener();
    const handshake = { upgrade: 'websocket', ...(await bearer()) };
    const answer = await ask(address('nobody-serves-this'), { headers: handshake });
    expect(answer.status).toBe(404);
    const error = answer.headers.get('dg-error') ?? '';
    expect(error).toContain('"nobody-serves-this" does not exist here. Available:');
    expect(await answer.json()).toMatchObject({ reason: 'model_unknown', err_msg: error });
    const spoken = await ask(address(name, '&language=tlh'), { headers: handshake });
    expect([spoken.status, spoken.headers.get('dg-error')]).toEqual([400, expect.stringContaining('"tlh"')]);
  });

  it('§3-24 how long it may say nothing is its token’s to shorten', async () => {
    const { name, agentStreams } = await startListener();
    const client = await LiveClient.connect(address(name), await bearer({ idleSeconds: 3 }));
    client.send(letters('hello.'));
    await client.waitFor('Results');
    await passQuietly(4_000, agentStreams[0]);
    expect(await client.end()).toMatchObject({ code: 1011 });
    expect(client.messages.at(-1)).toMatchObject({
      code: 'stream_idle',
      message: expect.stringContaining(' 3 seconds'),
    });
  });
});

describe('C10 POST /v1/listen', () => {
  const post = async (path: string, init: RequestInit = {}) =>
    ask(path, {
      method: 'POST',
      body: letters('the file'),
      ...init,
      headers: { ...(await bearer()), ...init.headers },
    });

  async function startReader() {
    const name = `model-${crypto.randomUUID().slice(0, 8)}`;
    const agent = await startAgent(name);
    agent.script = async function* (received) {
      await received.all();
      yield { type: 'form', fields: { model: [name] } };
      yield segment(0, 'hello there');
      yield segment(1, 'general kenobi');
      yield final(2);
    };
    return { name, agent };
  }

  it('answers in Deepgram’s shape', async () => {
    const { name, agent } = await startReader();
    const answer = await post(
      `/v1/listen?model=${name}&language=en&utterances=true&utt_split=0.5&paragraphs=true&tag=a`,
      {
        headers: { 'content-type': 'audio/wav' },
      },
    );
    expect(answer.status).toBe(200);
    expect(answer.headers.get('dg-request-id')).toBe(answer.headers.get('x-request-id'));
    const body = (await answer.json()) as Record<string, never>;
    expect(body).toMatchObject({
      metadata: {
        transaction_key: 'deprecated',
        request_id: answer.headers.get('x-request-id'),
        // printf 'the file' | sha256sum
        sha256: '994659de87f727ddcde75df44314f31d7f367b3bff347e852f390530f29720c7',
        duration: 8.47,
        channels: 1,
        tags: ['a'],
        model_info: expect.objectContaining({}),
      },
      results: {
        channels: [
          {
            alternatives: [
              {
                transcript: 'hello there general kenobi',
                confidence: 0.9,
                words: [
                  { word: 'hello', start: 0, end: 0.05, confidence: 0.9, punctuated_word: 'hello' },
                  { word: 'there' },
                  { word: 'general', start: 1 },
                  { word: 'kenobi' },
                ],
                paragraphs: { paragraphs: [{ num_words: 2 }, { num_words: 2 }] },
              },
            ],
          },
        ],
        utterances: [
          { transcript: 'hello there', start: 0, channel: 0, id: expect.stringMatching(/^[0-9a-f-]{36}$/) },
          { transcript: 'general kenobi', start: 1 },
        ],
      },
    });
    expect(agent.seen[0]?.head).toMatchObject({ dialect: 'deepgram-listen', contentType: 'audio/wav', model: name });
    const info = (body as unknown as { metadata: { model_info: Record<string, unknown> } }).metadata.model_info;
    expect(Object.values(info)).toEqual([{ name, version: REVISION, arch: 'auricle' }]);
  });

  it('makes a file of samples', async () => {
    const { name, agent } = await startReader();
    const heard: Uint8Array[] = [];
    const { script } = agent;
    agent.script = async function* (received) {
      heard.push(await received.all());
      yield* script({ ...received, all: async () => new Uint8Array(0) });
    };
    const answer = await post(`/v1/listen?model=${name}&encoding=linear16&sample_rate=8000`);
    expect(answer.status).toBe(200);
    const read = createWavReader().push(heard[0] as Uint8Array);
    expect(read).toMatchObject({ ok: true, value: { rate: 8_000, channels: [{ length: 4 }] } });
    expect(await answer.json()).toMatchObject({
      metadata: { sha256: expect.stringMatching(/^994659de87f727ddcde75df44314f31d7f367b3bff347e852f390530f29720c7/) },
    });
  });

  it('U3 warns of a detection without a choice, and of speakers', async () => {
    const { name } = await startReader();
    const answer = await post(`/v1/listen?model=${name}&detect_language=true&diarize=true`);
    const { metadata } = (await answer.json()) as { metadata: { warnings: { parameter: string; message: string }[] } };
    expect(metadata.warnings.map(({ parameter }) => parameter)).toEqual(['diarize', 'detect_language']);
    expect(metadata.warnings[1]?.message).toContain('one language, en');
  });

  it('reports the detected language on request', async () => {
    const { name } = await startReader();
    const answer = await post(`/v1/listen?model=${name}&detect_language=true`);
    expect(await answer.json()).toMatchObject({ results: { channels: [{ detected_language: 'en' }] } });
  });

  it.each([
    [
      'a file somewhere else',
      '',
      { headers: { 'content-type': 'application/json' }, body: '{"url":"http://10.0.0.1/"}' },
      'url',
    ],
    ['a callback that is no address', '&callback=example', {}, 'callback'],
    ['redaction', '&redact=pii', {}, 'redact'],
    ['a raw encoding that is not read', '&encoding=mulaw', {}, 'encoding'],
    ['channels apart of an upload', '&multichannel=true&callback=https://example.org', {}, 'multichannel'],
  ])('%s is refused and named', async (_, query, init, field) => {
    const answer = await post(`/v1/listen?model=m${query}`, init);
    expect(answer.status).toBe(400);
    const body = (await answer.json()) as { err_msg: string };
    expect(body).toMatchObject({ err_code: 'INVALID_QUERY_PARAMETER', reason: 'field_invalid' });
    expect(body.err_msg).toContain(`"${field}"`);
  });

  it.each([
    ['no model', '/v1/listen', 400, 'field_missing'],
    ['samples without their rate', '/v1/listen?model=m&encoding=linear16', 400, 'field_missing'],
    ['a model that nobody serves', '/v1/listen?model=nobody-serves-this', 404, 'model_unknown'],
  ])('%s is rendered in Deepgram’s shape', async (_, path, status, reason) => {
    const answer = await post(path);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ reason, request_id: answer.headers.get('x-request-id') });
  });
});
