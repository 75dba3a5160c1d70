import { beforeEach, describe, expect, it } from 'vitest';
import { ROSTER_GATHER_MS } from '../../../edge/routing/have-reconnected.ts';
import { SNAPSHOT_AGE_MS } from '../../../edge/routing/snapshot.ts';
import { STREAM_MOVE_MS } from '../../../edge/stream/upstream.ts';
import { ENGINE_SILENT_MS } from '../../../infra/pool/agent/engine/patience.ts';
import { ask, passTime, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { eventually } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { LiveClient, startListener } from '../live-client.ts';
import { StreamClient } from '../stream-client.ts';

const bearer = async () => ({ authorization: `Bearer ${await makeToken({})}` });
const PREFIX = 'conversation.item.input_audio_transcription';
const append = (text: string) => ({ type: 'input_audio_buffer.append', audio: btoa(text) });
const telephone = (model: string) => ({
  type: 'session.update',
  session: { audio: { input: { format: { type: 'audio/pcmu' }, transcription: { model } } } },
});
const busy = () => Response.json({ reason: 'pool_busy' }, { status: 503 });

/** Both rosters have run for long enough to be called by all agents. */
beforeEach(async () => {
  await ask('/v1/models', { headers: await bearer() });
  passTime(ROSTER_GATHER_MS);
});

/** An agent whose engine is away, as its roster knows. */
async function startWithoutEngine() {
  const listener = await startListener();
  await listener.agent.send(listener.agent.report({ engineReady: false }));
  await listener.agent.settled();
  passTime(SNAPSHOT_AGE_MS);
  return listener;
}

describe('C6 R1 a stream that begins while all engines are away', () => {
  it('is refused with the handshake for Deepgram', async () => {
    const { name, agent } = await startWithoutEngine();
    const headers = { upgrade: 'websocket', ...(await bearer()) };
    const answer = await ask(`/v1/listen?model=${name}&encoding=mulaw&sample_rate=8000`, { headers });
    expect(answer.status).toBe(503);
    expect(answer.headers.get('dg-error')).toBe('No pool can take the request at the moment.');
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await answer.json()).toMatchObject({ reason: 'no_pool' });
    expect(agent.requests).toBe(0);
  });

  it.each(['the address', 'an update'])('reads an error and 4503 for OpenAI, named by %s', async (where) => {
    const { name } = await startWithoutEngine();
    const query = where === 'the address' ? `model=${name}` : 'intent=transcription';
    const client = await LiveClient.connect(`/v1/realtime?${query}`, await bearer());
    if (where === 'an update') client.send(telephone(name));
    expect(await client.end()).toEqual({ code: 4503, reason: 'no_pool' });
    expect(client.all('error')).toMatchObject([{ error: { code: 'no_pool' } }]);
  });

  it('reads no_pool at its first sound when they went after it connected', async () => {
    const { name, agent } = await startListener();
    const client = await LiveClient.connect(`/v1/realtime?model=${name}`, await bearer());
    client.send(telephone(name));
    await client.waitFor('session.updated');
    await agent.send(agent.report({ engineReady: false }));
    await agent.settled();
    passTime(SNAPSHOT_AGE_MS);
    client.send(append('hello'));
    expect(await client.end()).toEqual({ code: 4503, reason: 'no_pool' });
  });

  it('reads a refusal and 4503 at /v1/stream', async () => {
    const { name } = await startWithoutEngine();
    const client = await StreamClient.connect();
    client.start(name);
    expect((await client.end()).code).toBe(4503);
    expect(client.all('refusal')).toMatchObject([{ reason: 'no_pool' }]);
  });
});

describe('C6 C10 R1 an OpenAI stream that is open when its agent goes', () => {
  async function openThenLose() {
    const listener = await startListener({ interims: true });
    const { name, agentStreams, agent } = listener;
    const client = await LiveClient.connect(`/v1/realtime?model=${name}`, await bearer());
    client.send(telephone(name)).send(append('one. tw'));
    await client.waitFor(`${PREFIX}.completed`);
    await client.waitFor(
      'input_audio_buffer.speech_started',
      ({ item_id }) => item_id !== client.all(`${PREFIX}.completed`)[0]?.item_id,
    );
    agent.plain = busy;
    const { requests } = agent;
    agentStreams[0]?.cut();
    await eventually(() => agent.requests > requests);
    return { ...listener, client };
  }

  it('gets every word after an outage of a minute', async () => {
    const { client, agent } = await openThenLose();
    passTime(60_000);
    client.send(append('o. thr'));
    agent.plain = undefined;
    await agent.send(agent.report());
    await agent.settled();
    passTime(SNAPSHOT_AGE_MS);
    client.send(append('ee.'));
    await client.waitFor(`${PREFIX}.completed`, ({ transcript }) => transcript === 'three');
    expect(client.all(`${PREFIX}.completed`).map(({ transcript }) => transcript)).toEqual(['one', 'two', 'three']);
    expect(client.all('error')).toEqual([]);
    client.close();
  });

  it('reads which item is lost when no agent comes back', async () => {
    const { client } = await openThenLose();
    passTime(STREAM_MOVE_MS);
    expect(await client.end()).toEqual({ code: 4502, reason: 'pool_lost' });
    const [lost] = client.all('input_audio_buffer.speech_started').slice(-1);
    expect(client.all(`${PREFIX}.failed`)).toMatchObject([{ item_id: lost?.item_id, error: { code: 'pool_lost' } }]);
    expect(client.all(`${PREFIX}.completed`)).toHaveLength(1);
  });
});

describe('C6 C9 a recording while all engines are away', () => {
  it('is not sent to an agent that reported its engine away meanwhile', async () => {
    const name = `model-${crypto.randomUUID().slice(0, 8)}`;
    const agents = [await startAgent(name), await startAgent(name, { pool: 'eks-test', zone: 'us' })];
    for (const agent of agents) {
      agent.script = async function* (received) {
        await received.all();
        passTime(ENGINE_SILENT_MS);
        yield { type: 'refusal', reason: 'engine_failed', params: {} };
      };
    }
    // The isolate has a snapshot of just before, in which both engines are there.
    await ask('/v1/models', { headers: await bearer() });
    for (const agent of agents) {
      await agent.send(agent.report({ engineReady: false }));
      await agent.settled();
    }
    const answer = await upload({ fields: [['model', name]] });
    expect(await readRefusal(answer)).toMatchObject({ status: 502, code: 'engine_failed' });
    expect(agents.reduce((sum, { requests }) => sum + requests, 0)).toBe(1);
  });
});
