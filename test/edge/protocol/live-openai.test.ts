import { describe, expect, it } from 'vitest';
import { REALTIME_IDLE_MS } from '../../../edge/protocol/openai-realtime.ts';
import { ask, passTime } from '../../fake/network.ts';
import { eventually } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { LiveClient, startLateListener, startListener } from '../live-client.ts';
import { passQuietly } from '../stream-listener.ts';

const bearer = async (claims: Record<string, unknown> = {}) => ({ authorization: `Bearer ${await makeToken(claims)}` });
const PREFIX = 'conversation.item.input_audio_transcription';

/** Letters are what the double hears; 8,000 of them are a second. */
const append = (text: string) => ({ type: 'input_audio_buffer.append', audio: btoa(text) });
const telephone = (model?: string) => ({
  type: 'session.update',
  session: { audio: { input: { format: { type: 'audio/pcmu' }, ...(model && { transcription: { model } }) } } },
});

interface Recorded {
  readonly type: string;
  readonly [name: string]: unknown;
}

/** The record of a tenant, once it has an event of a type. */
async function readEvents(tenant: string, type: string): Promise<Recorded[]> {
  for (;;) {
    const answer = await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers: await bearer() });
    const events = ((await answer.json()) as { rows: { event: Recorded }[] }).rows.map(({ event }) => event);
    if (events.some((event) => event.type === type)) return events;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('C10 R1 a realtime session from a client to an agent', () => {
  it('sends the transcript, in text frames only', async () => {
    const { name, agentStreams } = await startListener({ interims: true });
    const client = await LiveClient.connect(`/v1/realtime?intent=transcription&model=${name}`, await bearer());
    expect((await client.waitFor('session.created')).type).toBe(client.types[0]);
    expect(client.headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/);
    client.send(telephone()).send(append('hello there ')).send(append('general.')).send(append('kenobi.'));
    await client.waitFor(`${PREFIX}.completed`, ({ transcript }) => transcript === 'kenobi');
    const completed = client.all(`${PREFIX}.completed`);
    expect(completed.map(({ transcript }) => transcript)).toEqual(['hello there general', 'kenobi']);
    for (const { item_id, transcript } of completed) {
      const deltas = client.all(`${PREFIX}.delta`).filter((delta) => delta.item_id === item_id);
      expect(deltas.map(({ delta }) => delta).join('')).toBe(transcript);
    }
    expect(client.binary).toBe(0);
    expect(agentStreams[0]?.opened).toMatchObject({
      model: name,
      format: { encoding: 'mulaw', rate: 8_000, channels: 1 },
      options: { interim: true, endpointingMs: 500 },
    });
    client.close();
    await eventually(() => agentStreams[0]?.closed);
  });

  it('§3-17 buffers audio before an agent is ready', async () => {
    const { name, agentStreams, letReady } = await startLateListener();
    const client = await LiveClient.connect(`/v1/realtime?model=${name}`, await bearer());
    client.send(telephone()).send(append('early '));
    await eventually(() => agentStreams[0]?.opened);
    client.send(append('words.'));
    letReady();
    expect(await client.waitFor(`${PREFIX}.completed`)).toMatchObject({ transcript: 'early words' });
    client.close();
  });

  it('answers a commit, and bad messages with errors that do not end it', async () => {
    const { name } = await startListener();
    const client = await LiveClient.connect('/v1/realtime?intent=transcription', await bearer());
    client.send('{').send(new Uint8Array(3)).send(append('lost'));
    await eventually(() => client.all('error').length === 3);
    client.send(telephone(name));
    client.send({ type: 'session.update', session: { audio: { input: { turn_detection: null } } } });
    client
      .send(append('_'.repeat(800)))
      .send(append('spoken'))
      .send({ type: 'input_audio_buffer.commit' });
    const committed = await client.waitFor('input_audio_buffer.committed');
    expect(await client.waitFor(`${PREFIX}.completed`)).toMatchObject({
      item_id: committed.item_id,
      transcript: 'spoken',
    });
    client.send({ type: 'input_audio_buffer.commit' });
    await client.waitFor(
      'error',
      ({ error }) => (error as { code: string }).code === 'input_audio_buffer_commit_empty',
    );
    expect(client.ended).toBeUndefined();
    client.close();
  });

  it('refuses an unknown model at once and names the known ones', async () => {
    const { name } = await startListener();
    const early = await LiveClient.connect('/v1/realtime?model=gpt-realtime', await bearer());
    expect(await early.end()).toMatchObject({ code: 4404 });
    expect(early.messages).toMatchObject([{ type: 'error', error: { code: 'model_unknown', param: 'model' } }]);
    const message = ({ error }: { readonly [key: string]: unknown }) => (error as { message: string }).message;
    expect(message(early.messages[0] ?? {})).toContain('"gpt-realtime" does not exist here. Available:');
    // A session that is configured later stays open for another try.
    const late = await LiveClient.connect('/v1/realtime?intent=transcription', await bearer());
    late.send({ ...telephone('gpt-realtime'), event_id: 'mine' });
    const error = await late.waitFor('error');
    expect(message(error)).toContain('Available:');
    expect(error).toMatchObject({ error: { event_id: 'mine' } });
    // It is as if that had not been said.
    late.send({ type: 'session.update', session: {} });
    const input = { format: { type: 'audio/pcm', rate: 24_000 }, transcription: { model: null } };
    expect(await late.waitFor('session.updated')).toMatchObject({ session: { audio: { input } } });
    late.send(telephone(name)).send(append('spoken.'));
    expect(await late.waitFor(`${PREFIX}.completed`)).toMatchObject({ transcript: 'spoken' });
    expect(late.all('error')).toHaveLength(1);
    late.close();
  });
});

describe('C10 access to a realtime session', () => {
  it('a browser, with the token in a sub-protocol that is not echoed', async () => {
    const token = await makeToken();
    const client = await LiveClient.connect('/v1/realtime?intent=transcription', {
      'sec-websocket-protocol': `realtime, openai-insecure-api-key.${token}, openai-organization.org-1, openai-project.p`,
    });
    await client.waitFor('session.created');
    expect(client.protocol).toBe('realtime');
    client.close();
  });

  it('a client secret grants the session that it was made for', async () => {
    const { name, agentStreams } = await startListener();
    const session = {
      type: 'transcription',
      audio: { input: { format: { type: 'audio/pcmu' }, transcription: { model: name, prompt: 'Zürich' } } },
    };
    const made = await ask('/v1/realtime/client_secrets', {
      method: 'POST',
      headers: await bearer(),
      body: JSON.stringify({ session }),
    });
    const { value } = (await made.json()) as { value: string };
    const client = await LiveClient.connect('/v1/realtime', {
      'sec-websocket-protocol': `realtime, openai-insecure-api-key.${value}`,
    });
    expect(await client.waitFor('session.created')).toMatchObject({ session });
    client.send(append('at once.'));
    expect(await client.waitFor(`${PREFIX}.completed`)).toMatchObject({ transcript: 'at once' });
    expect(agentStreams[0]?.ticket).toMatchObject({ tenant: 'acme' });
    client.close();
  });

  it('ignores a header that only the edge may set', async () => {
    const forged = encodeURIComponent(JSON.stringify({ audio: { input: { transcription: { model: 'forged' } } } }));
    const client = await LiveClient.connect('/v1/realtime?intent=transcription', {
      ...(await bearer()),
      'auricle-realtime-config': forged,
    });
    expect(JSON.stringify(await client.waitFor('session.created'))).not.toContain('forged');
    client.close();
  });

  it.each([
    ['no token', {}, 'token_missing', 4401],
    ['a token in the address', { query: true }, 'token_missing', 4401],
    ['a token of somebody else', { token: 'a.b.c' }, 'token_invalid', 4401],
    ['too little scope', { claims: { scope: 'models' } }, 'scope_missing', 4403],
    ['a tenant that seals by itself', { claims: { sealing: 'client' } }, 'sealing_required', 4403],
  ] as const)('with %s gets an error event and a close', async (_, wish, reason, code) => {
    const token = 'token' in wish ? wish.token : await makeToken('claims' in wish ? wish.claims : {});
    const sends = 'token' in wish || 'claims' in wish;
    const query = 'query' in wish ? `&token=${token}&access_token=${token}` : '';
    const client = await LiveClient.connect(
      `/v1/realtime?intent=transcription${query}`,
      sends ? { authorization: `Bearer ${token}` } : {},
    );
    const end = await client.end();
    expect(client.messages).toMatchObject([{ type: 'error', error: { code: reason } }]);
    expect(end).toMatchObject({ code, reason });
  });

  it('§3-19 a session beyond the limit is refused with the number', async () => {
    const { name } = await startListener();
    const tenant = `t-${crypto.randomUUID().slice(0, 8)}`;
    const headers = await bearer({ tenant, allowance: { requestsAtOnce: 1 } });
    const connect = () => LiveClient.connect(`/v1/realtime?model=${name}`, headers);
    const first = await connect();
    first.send(telephone()).send(append('first.'));
    await first.waitFor(`${PREFIX}.completed`);
    const second = await connect();
    second.send(telephone()).send(append('second.'));
    expect(await second.end()).toMatchObject({ code: 4429, reason: 'allowance_concurrent' });
    expect(second.all('error')).toMatchObject([{ error: { type: 'rate_limit_error', code: 'allowance_concurrent' } }]);
    first.close();
  });

  it('§3-24 a session ends with its token and names the reason', async () => {
    const { name } = await startListener();
    const headers = await bearer({ sessionSeconds: 8 });
    const client = await LiveClient.connect(`/v1/realtime?model=${name}`, headers);
    const created = await client.waitFor('session.created');
    const { expires_at } = created.session as { expires_at: number };
    expect(Math.abs(expires_at - Date.now() / 1_000 - 8)).toBeLessThan(2);
    client.send(telephone()).send(append('almost over.'));
    await client.waitFor(`${PREFIX}.completed`);
    passTime(9_000);
    expect(await client.end()).toMatchObject({ code: 1001, reason: 'session_expired' });
    expect(client.all('error')).toMatchObject([{ error: { code: 'session_expired' } }]);
  });

  it('R1 closes a client after five silent minutes, after all results', async () => {
    const { name, agentStreams } = await startListener();
    const client = await LiveClient.connect(`/v1/realtime?model=${name}`, await bearer());
    client.send(telephone()).send(append('before. while nobody speaks'));
    await client.waitFor(`${PREFIX}.completed`);
    await passQuietly(REALTIME_IDLE_MS - 1_000, agentStreams[0]);
    expect(client.ended).toBeUndefined();
    await passQuietly(2_000, agentStreams[0]);
    expect(await client.end()).toMatchObject({ code: 4408, reason: 'stream_idle' });
    expect(client.all(`${PREFIX}.completed`).map(({ transcript }) => transcript)).toEqual([
      'before',
      'while nobody speaks',
    ]);
    expect(client.all('error')).toMatchObject([{ error: { code: 'stream_idle' } }]);
    expect(JSON.stringify(client.all('error'))).toContain('300 seconds');
  });

  it('an unknown model is an error and ends the session', async () => {
    const client = await LiveClient.connect('/v1/realtime?model=nobody-serves-this', await bearer());
    client.send(telephone()).send(append('hello'));
    expect(await client.end()).toMatchObject({ code: 4404, reason: 'model_unknown' });
    expect(client.all('error')).toMatchObject([{ error: { code: 'model_unknown', param: 'model' } }]);
  });

  const commit = { type: 'input_audio_buffer.commit' };
  const untimed = { type: 'session.update', session: { audio: { input: { turn_detection: null } } } };
  it.each<[string, readonly object[], object]>([
    ['after the last word', [append('one. two.')], { status: 200 }],
    [
      'after its last commit was answered',
      [untimed, append('_'.repeat(800)), append('one. two'), commit],
      { status: 200 },
    ],
    ['in the middle of a word', [append('one. two. thr')], { status: 499, reason: 'client_gone' }],
  ])('C4 R14 records how a session ended that its client closes %s', async (_, messages, end) => {
    const tenant = `t-${crypto.randomUUID().slice(0, 8)}`;
    const { name, agentStreams } = await startListener({ interims: true });
    const client = await LiveClient.connect(`/v1/realtime?model=${name}`, await bearer({ tenant }));
    client.send(telephone());
    for (const message of messages) client.send(message);
    await client.waitFor(`${PREFIX}.completed`, ({ transcript }) => String(transcript).endsWith('two'));
    if (!('reason' in end)) client.close();
    else {
      await client.waitFor('input_audio_buffer.speech_started', ({ item_id }) =>
        client.all(`${PREFIX}.completed`).every((item) => item.item_id !== item_id),
      );
      client.close();
    }
    const events = await readEvents(tenant, 'inference.complete');
    const completes = events.filter(({ type }) => type === 'inference.complete');
    expect(completes.map(({ status, reason }) => ({ status, ...(reason !== undefined && { reason }) }))).toEqual([end]);
    const outcome = 'reason' in end ? end.reason : 'served';
    expect(events.filter(({ type }) => type === 'route')).toMatchObject([{ outcome }]);
    // The agent was told that the stream is over, or sees only that the connection is.
    const ends = agentStreams[0]?.messages.filter((said) => !('kind' in said) && said.type === 'end');
    expect(ends).toHaveLength('reason' in end ? 0 : 1);
  });

  it('C4 is in the record, whatever became of it', async () => {
    const tenant = `t-${crypto.randomUUID().slice(0, 8)}`;
    const { name } = await startListener();
    const client = await LiveClient.connect(`/v1/realtime?model=${name}`, await bearer({ tenant }));
    client.send(telephone()).send(append('for the record.'));
    await client.waitFor(`${PREFIX}.completed`);
    client.close();
    const refused = await LiveClient.connect('/v1/realtime?intent=nonsense', await bearer({ tenant }));
    await refused.end();
    const read = async () => {
      const answer = await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers: await bearer() });
      return await answer.text();
    };
    let record = '';
    await eventually(() => {
      void read().then((text) => {
        record = text;
      });
      return ['inference.attempt', 'inference.complete', 'inference.denied'].every((type) => record.includes(type));
    });
    expect(record).not.toContain('for the record');
  });
});
