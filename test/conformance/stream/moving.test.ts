import { describe, expect, it } from 'vitest';
import { STREAM_AGENTS_MAX, STREAM_MOVE_MS } from '../../../edge/stream/upstream.ts';
import { StreamClient } from '../../edge/stream-client.ts';
import { modelName, startListener } from '../../edge/stream-listener.ts';
import { passTime, startAgent } from '../../fake/network.ts';
import { type AgentStream, eventually, type Habits, habitsOf, listen } from '../../fake/stream-agent.ts';

/** Starts two agents of one model; the sessions that arrive show which one was picked first. */
async function startPair(habits: Partial<Habits> = {}, claims: Record<string, unknown> = {}) {
  const name = modelName();
  const agents = await Promise.all(['one', 'two'].map((pool) => startAgent(name, { live: true, pool: `aks-${pool}` })));
  const own = habitsOf(habits);
  const agentStreams: AgentStream[] = [];
  for (const agent of agents) listen(agent, own, agentStreams);
  const client = await StreamClient.connect('', claims);
  client.start(name, { options: { interim: false } });
  await client.waitFor('ack');
  return { name, agents, agentStreams, client, habits: own };
}

const texts = (client: StreamClient) => client.all('segment').map(({ index, text }) => `${index} ${text}`);
const whole = ['0 one', '1 two', '2 three', '3 four', '4 five'];

/** Segments of an undisturbed session: the expected words, indexes and times. */
async function undisturbed(): Promise<unknown[]> {
  const { name } = await startListener();
  const client = await StreamClient.connect();
  client.start(name).speak('one. two. three. four. five.').send({ type: 'end' });
  await client.end();
  return client.all('segment');
}

describe('R1 A8 the agent is lost', () => {
  it.each([
    ['before the first audio', '', ''],
    ['between two utterances', 'one. two.', ''],
    ['in the middle of a word', 'one. two. thr', ''],
    ['after the end', 'one. two. three. four. five.', 'end'],
  ])('MUST 36: %s, and nothing of it is in the transcript', async (_, before, then) => {
    const { agentStreams, client } = await startPair({ finals: false });
    if (before !== '') client.speak(before);
    if (then === 'end') client.send({ type: 'end' });
    await eventually(() => agentStreams[0]?.position === before.length);
    agentStreams[0]?.cut();
    const agentStream = await eventually(() => agentStreams[1]);
    expect(await client.waitFor('moved')).toEqual({ type: 'moved', agent: agentStream.agent });
    expect(agentStream.agent).not.toBe(agentStreams[0]?.agent);
    client.speak('one. two. three. four. five.'.slice(before.length));
    if (then !== 'end') client.send({ type: 'end' });
    await eventually(() => agentStream.messages.some((said) => !('kind' in said) && said.type === 'end'));
    agentStream.final();
    expect((await client.end()).code).toBe(1000);
    expect(texts(client)).toEqual(whole);
    expect(client.all('segment')).toEqual(await undisturbed());
    expect(client.all('gap')).toEqual([]);
  });

  it('MUST 36: returns to the same agent when it is alone', async () => {
    const { name, agentStreams, agent } = await startListener();
    const client = await StreamClient.connect();
    client.start(name).speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    agent.plain = () => Response.json({ reason: 'pool_busy' }, { status: 503 });
    agentStreams[0]?.cut();
    await eventually(() => agent.requests >= 2);
    client.speak('o.');
    agent.plain = undefined;
    await client.waitFor('moved');
    client.send({ type: 'end' });
    await client.end();
    expect(texts(client)).toEqual(['0 one', '1 two']);
  });

  it.each(['engine_failed', 'pool_busy', 'internal'] as const)(
    'MUST 36: an agent that refuses with %s counts as lost',
    async (reason) => {
      const { agentStreams, client } = await startPair();
      client.speak('one. tw');
      await eventually(() => agentStreams[0]?.position === 7);
      agentStreams[0]?.send({ type: 'refusal', reason });
      await client.waitFor('moved');
      client.speak('o.').send({ type: 'end' });
      await client.end();
      expect(texts(client)).toEqual(['0 one', '1 two']);
    },
  );

  it('reports a refusal that no other agent could avoid', async () => {
    const { agentStreams, client } = await startPair();
    agentStreams[0]?.send({ type: 'refusal', reason: 'audio_invalid', params: { rule: 'it is noise' } });
    expect((await client.end()).code).toBe(4400);
    expect(client.all('refusal')).toMatchObject([{ reason: 'audio_invalid' }]);
    expect(agentStreams).toHaveLength(1);
  });

  it('MUST 36: unanswered requests are repeated, and answered once', async () => {
    const { agentStreams, client, habits } = await startPair();
    client.speak('one');
    await eventually(() => agentStreams[0]?.position === 3);
    habits.before = (_, said) => !('kind' in said) && said.type === 'finalize' && agentStreams.length === 1;
    client.send({ type: 'finalize', id: 5 }).speak(' two');
    await eventually(() => agentStreams[0]?.position === 7);
    agentStreams[0]?.cut();
    await client.waitFor('finalized');
    client.send({ type: 'end' });
    await client.end();
    expect(client.all('finalized')).toEqual([{ type: 'finalized', id: 5 }]);
    expect(client.receivedBefore('finalized')).toEqual(['one']);
  });

  it('so often and no more, however far each of them gets', async () => {
    // Each agent receives an utterance, settles it, and dies.
    const dies: Habits['before'] = (agentStream, said) => {
      if ('kind' in said) queueMicrotask(() => agentStream.cut());
      return false;
    };
    const { agentStreams, client } = await startPair({ before: dies });
    const most = STREAM_AGENTS_MAX;
    for (let lost = 0; lost <= most; lost++) {
      await eventually(() => client.all('moved').length === lost);
      client.speak('a.');
    }
    expect((await client.end()).code).toBe(4502);
    expect(client.messages.at(-1)).toMatchObject({ reason: 'pool_lost' });
    expect(client.all('segment')).toHaveLength(most + 1);
    expect(agentStreams).toHaveLength(most + 1);
  }, 30_000);

  it('R1 while the client is away, too', async () => {
    const { name, agentStreams, client } = await startPair();
    client.speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    const session = String(client.all('started')[0]?.session);
    client.drop();
    await eventually(() => client.ended);
    agentStreams[0]?.cut();
    await eventually(() => agentStreams[1]?.position === 7);
    const again = await StreamClient.connect(`?session=${session}`);
    again.start(name, { resume: client.resume, next: 1 });
    expect(await again.waitFor('started')).toMatchObject({ position: 7 });
    again.speak('o.', 7).send({ type: 'end' });
    await again.end();
    expect(texts(again)).toEqual(['1 two']);
    expect(again.all('moved')).toHaveLength(1);
  });

  it('MUST 37: without an agent for two minutes the session ends', async () => {
    const { name, agentStreams, agent } = await startListener();
    const client = await StreamClient.connect();
    client.start(name).speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    agent.plain = () => Response.json({ reason: 'pool_busy' }, { status: 503 });
    agentStreams[0]?.cut();
    await eventually(() => agent.requests >= 2);
    passTime(STREAM_MOVE_MS);
    expect((await client.end()).code).toBe(4502);
    expect(client.messages.at(-1)).toMatchObject({ reason: 'pool_lost' });
    expect(texts(client)).toEqual(['0 one']);
  });
});
