import { describe, expect, it } from 'vitest';
import { encodings } from '../../../shared/stream/format.ts';
import { makeToken } from '../../edge/authority.ts';
import { StreamClient, slow } from '../../edge/stream-client.ts';
import { modelName, startListener } from '../../edge/stream-listener.ts';
import { ask, startAgent } from '../../fake/network.ts';

const upgrade = { upgrade: 'websocket' };

/** Returns the refusal that a client receives, and the end of its connection. */
async function refused(client: StreamClient) {
  const { code, reason } = await client.end();
  const [said] = client.all('refusal');
  return { said: said?.reason, code, reason, messages: client.messages.length };
}

describe('connecting to /v1/stream', () => {
  it('MUST 1: accepts a token in header or sub-protocol, answers without credentials', async () => {
    const token = await makeToken();
    const both = `auricle, auricle-token.${token}`;
    const answers = await Promise.all([
      ask('/v1/stream', { headers: { ...upgrade, authorization: `Bearer ${token}` } }),
      ask('/v1/stream', { headers: { ...upgrade, 'sec-websocket-protocol': both } }),
      ask('/v1/stream', { headers: { ...upgrade, 'sec-websocket-protocol': `auricle-token.${token}` } }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([101, 101, 101]);
    const protocols = answers.map(({ headers }) => headers.get('sec-websocket-protocol'));
    expect(protocols).toEqual([null, 'auricle', null]);
    for (const answer of answers) StreamClient.of(answer).close();
  });

  it.each([
    ['no token', async () => ({}), 'token_missing', 4401],
    ['a token of somebody else', async () => ({ authorization: 'Bearer a.b.c' }), 'token_invalid', 4401],
    ['an old token', async () => ({ authorization: `Bearer ${await makeToken({}, -120)}` }), 'token_expired', 4401],
    [
      'a token without the scope',
      async () => ({ authorization: `Bearer ${await makeToken({ scope: 'models' })}` }),
      'scope_missing',
      4403,
    ],
  ])('MUST 2: %s is a refusal on an accepted socket', async (_, headers, reason, code) => {
    const answer = await ask('/v1/stream', { headers: { ...upgrade, ...(await headers()) } });
    expect(answer.status).toBe(101);
    const client = StreamClient.of(answer);
    expect(await refused(client)).toMatchObject({ said: reason, code, messages: 1 });
  });

  it('MUST 3: a request that is no upgrade is 426', async () => {
    const answer = await ask('/v1/stream', { headers: { authorization: `Bearer ${await makeToken()}` } });
    expect(answer.status).toBe(426);
  });

  it('MUST 4: refuses a tenant whose audio only clients may seal', async () => {
    const { name } = await startListener();
    const client = await StreamClient.connect('', { sealing: 'client' });
    client.start(name);
    expect(await refused(client)).toMatchObject({ said: 'sealing_required', code: 4403 });
  });
});

describe('starting', () => {
  it.each([
    ['audio', new Uint8Array(10)],
    ['an end', { type: 'end' }],
    ['a question', { type: 'finalize', id: 1 }],
  ])('MUST 5: %s before start is refused', async (_, message) => {
    const client = await StreamClient.connect();
    client.send({ type: 'ping' }).send(message);
    expect(await refused(client)).toMatchObject({ said: 'frame_invalid', code: 4400 });
    expect(client.messages[0]).toEqual({ type: 'pong' });
  });

  it('MUST 5: a second start is refused', async () => {
    const { name } = await startListener();
    const client = await StreamClient.connect();
    client.start(name).start(name);
    expect(await refused(client)).toMatchObject({ said: 'frame_invalid', code: 4400 });
  });

  it('MUST 6: refuses an unknown model, a deaf one, and one elsewhere', async () => {
    const [deaf, far] = [modelName(), modelName()];
    await startListener();
    await startAgent(deaf);
    await startAgent(far, { live: true, zone: 'us' });
    const reasons = [];
    for (const name of [modelName(), deaf, far]) {
      const client = await StreamClient.connect('', { zones: ['eu'] });
      reasons.push((await refused(client.start(name))).said);
    }
    expect(reasons).toEqual(['model_unknown', 'model_not_live', 'residency_mismatch']);
  });

  it('MUST 6: refuses a language outside the token or the model', async () => {
    const { name } = await startListener();
    const allowed = await StreamClient.connect('', { languages: ['en'] });
    expect((await refused(allowed.start(name, { language: 'fr' }))).said).toBe('language_forbidden');
    const known = await StreamClient.connect();
    expect((await refused(known.start(name, { language: 'fr' }))).said).toBe('language_unknown');
  });

  it('MUST 7: sends started first, then ready, then a resume token', async () => {
    const { name, agent } = await startListener();
    const client = await StreamClient.connect();
    client.start(name, { options: { interim: false } });
    await client.waitFor('ack');
    expect(client.messages.map(({ type }) => type)).toEqual(['started', 'ready', 'ack']);
    expect(client.messages[0]).toEqual({
      type: 'started',
      v: 1,
      session: expect.stringMatching(/^[\w-]{16,}$/),
      position: 0,
      time: 0,
      windowBytes: 3 * 1024 * 1024,
    });
    expect(client.messages[1]).toMatchObject({ agent: agent.name, model: name, language: 'en' });
    expect(client.messages[2]).toMatchObject({ position: 0, resume: expect.stringMatching(/^[\w-]{64,}$/) });
    client.close();
  });

  it('takes every format of the protocol', async () => {
    const { name, agentStreams } = await startListener();
    for (const encoding of encodings) {
      const client = await StreamClient.connect();
      client.start(name, { format: { ...slow, encoding } });
      await client.waitFor('ready');
      expect(agentStreams.at(-1)?.opened?.format).toEqual({ ...slow, encoding });
      client.close();
    }
  });
});

describe('admission', () => {
  it('takes the identity from the token alone', async () => {
    const { name, agentStreams } = await startListener();
    const claims = { tenant: 'globex', zones: ['us'], scopes: ['operate'], languages: ['*'], audit: 'buffered' };
    const forged = Buffer.from(JSON.stringify({ request: 'r', dialect: 'auricle-stream', claims })).toString(
      'base64url',
    );
    const client = await StreamClient.connect('', {}, { 'auricle-handover': forged, 'x-auricle-tenant': 'globex' });
    client.start(name);
    await client.waitFor('ready');
    expect(agentStreams[0]?.ticket).toMatchObject({ tenant: 'acme' });
    client.close();
  });

  it('grants the requested class up to the ceiling of the token', async () => {
    const { name, agentStreams } = await startListener();
    const classes = [];
    for (const [query, priority] of [
      ['', 'realtime'],
      ['?class=batch', 'realtime'],
      ['?class=realtime', 'default'],
    ]) {
      const client = await StreamClient.connect(query, { priority });
      client.start(name);
      await client.waitFor('ready');
      classes.push(agentStreams.at(-1)?.ticket.class);
      client.close();
    }
    expect(classes).toEqual(['realtime', 'batch', 'default']);
  });
});
