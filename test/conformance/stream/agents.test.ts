import { describe, expect, it } from 'vitest';
import { SNAPSHOT_AGE_MS } from '../../../edge/routing/snapshot.ts';
import { STREAM_SILENCE_MS } from '../../../edge/stream/deadlines.ts';
import { STREAM_FINISH_MS } from '../../../edge/stream/limits.ts';
import { STREAM_WINDOW_BYTES } from '../../../edge/stream/replay-buffer.ts';
import { STREAM_MOVE_MS, STREAM_MOVES_MAX } from '../../../edge/stream/upstream.ts';
import { SEAL_SEGMENT_BYTES } from '../../../shared/seal/limits.ts';
import type { LinkEvent } from '../../../shared/stream/link.ts';
import { StreamClient, slow } from '../../edge/stream-client.ts';
import { modelName, passQuietly, startListener } from '../../edge/stream-listener.ts';
import { passTime, startAgent } from '../../fake/network.ts';
import { type AgentStream, eventually, listen } from '../../fake/stream-agent.ts';

async function startClient(habits = {}, start = {}, claims = {}) {
  const listener = await startListener(undefined, habits);
  const client = await StreamClient.connect('', claims);
  client.start(listener.name, start);
  await client.waitFor('ack');
  return { client, ...listener };
}

const kinds = (agentStream: AgentStream | undefined) =>
  agentStream?.messages.map((said) => ('kind' in said ? said.text : said.type)) ?? [];
const sentTo = (agentStream: AgentStream | undefined) =>
  Math.max(
    0,
    ...(agentStream?.messages.flatMap((said) => ('kind' in said ? [said.position + said.text.length] : [])) ?? []),
  );
const control = (agentStream: AgentStream | undefined, type: string) =>
  agentStream?.messages.find((said) => !('kind' in said) && said.type === type);

describe('messages of the edge to an agent', () => {
  it('MUST 40: each dial has its own ticket for the remaining session', async () => {
    const { client, agentStreams, agent } = await startClient({}, {}, { sessionSeconds: 100 });
    await passQuietly(30_000, agentStreams[0], client);
    await agent.send(agent.report());
    await agent.settled();
    agentStreams[0]?.cut();
    await client.waitFor('moved');
    const [first, second] = agentStreams.map(
      ({ ticket }) => ticket as { jti: string; deadlineMs: number; tenant: string },
    );
    expect(first?.jti).not.toBe(second?.jti);
    expect(first).toMatchObject({ tenant: 'acme' });
    const finish = STREAM_FINISH_MS;
    expect(first?.deadlineMs).toBeLessThanOrEqual(finish + 100_000);
    expect(first?.deadlineMs).toBeGreaterThan(finish + 90_000);
    expect(second?.deadlineMs).toBeLessThanOrEqual(finish + 70_000);
    expect(second?.deadlineMs).toBeGreaterThan(finish + 50_000);
    client.close();
  });

  it('MUST 41: open first, end last and in the final record', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('one').send({ type: 'finalize', id: 1 }).speak('two').send({ type: 'end' });
    await client.end();
    expect(kinds(agentStreams[0])).toEqual(['open', 'one', 'finalize', 'two', 'end']);
    expect(agentStreams[0]?.finals).toEqual([4]);
  });

  it('MUST 42: audio follows without a gap, split to fit a record', async () => {
    const { client, agentStreams } = await startClient();
    const long = `${'_'.repeat(200_000)}one.`;
    client.speak(long).send({ type: 'end' });
    await client.end();
    const audio = agentStreams[0]?.messages.flatMap((said) => ('kind' in said ? [said] : [])) ?? [];
    expect(audio.length).toBeGreaterThan(3);
    expect(audio.map(({ text }) => text).join('')).toBe(long);
    let position = 0;
    for (const { position: at, text } of audio) {
      expect(at).toBe(position);
      expect(text.length).toBeLessThan(SEAL_SEGMENT_BYTES);
      position += text.length;
    }
    expect(client.transcript).toBe('one');
  });

  it('MUST 42: a packet is one record, also when sent again', async () => {
    const format = { encoding: 'opus', rate: 48_000, channels: 1 };
    const { client, agentStreams } = await startClient({}, { format });
    const packets = ['one ', 'tw', 'o ', 'three'];
    for (const packet of packets) client.speak(packet);
    await eventually(() => agentStreams[0]?.position === 13);
    agentStreams[0]?.cut();
    await eventually(() => agentStreams[1]?.position === 13);
    expect(kinds(agentStreams[1])).toEqual(['open', ...packets]);
    client.close();
  });

  it('MUST 43: sends at most one window beyond the acknowledged position', async () => {
    const { client, agentStreams } = await startClient({ acknowledges: false });
    for (let sent = 0; sent < 2 * 1024 * 1024; sent += 100_000) client.speak('_'.repeat(100_000));
    client.send({ type: 'ping' });
    await client.waitFor('pong');
    const window = STREAM_WINDOW_BYTES;
    await eventually(() => sentTo(agentStreams[0]) > window - 100_000);
    expect(sentTo(agentStreams[0])).toBeLessThanOrEqual(window);
    agentStreams[0]?.send({ type: 'heard', position: 100_000, time: 12.5 });
    await eventually(() => sentTo(agentStreams[0]) > window);
    expect(sentTo(agentStreams[0])).toBeLessThanOrEqual(window + 100_000);
    client.close();
  });

  it('MUST 44: requests and options keep their position between samples', async () => {
    const { client, agentStreams } = await startClient();
    client
      .speak('ab')
      .send({ type: 'clear', id: 0 })
      .speak('cd')
      .send({ type: 'options', options: { interim: false } });
    client.speak('ef').send({ type: 'finalize', id: 0 }).speak('gh').send({ type: 'end' });
    await client.end();
    expect(kinds(agentStreams[0])).toEqual(['open', 'ab', 'clear', 'cd', 'options', 'ef', 'finalize', 'gh', 'end']);
    expect(control(agentStreams[0], 'clear')).toEqual({ type: 'clear', id: 0, position: 2 });
    expect(control(agentStreams[0], 'finalize')).toEqual({ type: 'finalize', id: 0, position: 6 });
  });

  it('MUST 45: the next agent gets the last checkpoint and all later audio', async () => {
    const { client, agentStreams } = await startClient({ checkpoints: false });
    client.speak('one. ');
    await eventually(() => agentStreams[0]?.position === 5);
    agentStreams[0]?.checkpoint({ position: 4, time: 4 / 8_000, state: 'c3RhdGU=' });
    await client.waitFor('ack', ({ position }) => position === 4);
    client.send({ type: 'options', options: { endpointingMs: false } }).speak('two');
    client.send({ type: 'finalize', id: 1 }).speak(' three');
    await client.waitFor('finalized');
    await eventually(() => agentStreams[0]?.position === 14);
    agentStreams[0]?.cut();
    await eventually(() => agentStreams[1]?.position === 14);
    expect(agentStreams[1]?.opened).toMatchObject({
      from: { position: 4, time: 4 / 8_000, index: 1, state: 'c3RhdGU=' },
      options: { interim: true, endpointingMs: 500 },
    });
    // The finalize was answered, but it cut the utterance: it is sent again at its position, and that answer
    // is dropped.
    expect(kinds(agentStreams[1])).toEqual(['open', ' ', 'options', 'two', 'finalize', ' three']);
    client.send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two|three');
    expect(client.all('finalized')).toHaveLength(1);
  });

  it('MUST 46: constraints of the first choice hold for the next', async () => {
    const name = modelName();
    const near = await startAgent(name, { live: true });
    const far = await startAgent(name, { live: true, zone: 'us' });
    const [here, there] = [listen(near), listen(far)];
    const client = await StreamClient.connect('', { zones: ['eu'] });
    client.start(name);
    await client.waitFor('ack');
    near.plain = () => Response.json({ reason: 'pool_busy' }, { status: 503 });
    here[0]?.cut();
    await eventually(() => near.requests >= 3);
    expect([there.length, far.requests]).toEqual([0, 0]);
    client.close();
  });

  it('MUST 49: another agent is ready before a draining one is left', async () => {
    const { client, agentStreams, name, habits } = await startClient();
    client.speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    habits.ready = false;
    const other = await startAgent(name, { live: true, pool: 'aks-other' });
    listen(other, habits, agentStreams);
    agentStreams[0]?.send({ type: 'drain' });
    const next = await eventually(() => agentStreams[1]);
    await eventually(() => next.opened);
    // The first session continues meanwhile.
    client.speak('o. thr');
    await client.waitFor('segment', ({ index }) => index === 1);
    expect(agentStreams[0]?.closed).toBeUndefined();
    next.ready(name);
    await eventually(() => agentStreams[0]?.closed);
    client.speak('ee.').send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two|three');
    expect(client.all('moved')).toEqual([{ type: 'moved', agent: other.name }]);
  });

  it('MUST 49: losing a draining agent gets the full search time', async () => {
    const { client, agentStreams, agent } = await startClient();
    client.speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    agent.plain = () => Response.json({ reason: 'pool_busy' }, { status: 503 });
    const { requests } = agent;
    agentStreams[0]?.send({ type: 'drain' });
    await eventually(() => agent.requests > requests);
    await passQuietly(STREAM_MOVE_MS - 5_000, agentStreams[0], client);
    agentStreams[0]?.cut();
    await eventually(() => agentStreams[0]?.closed);
    const { length } = client.messages;
    client.send({ type: 'ping' });
    await eventually(() => client.messages.length > length);
    passTime(10_000);
    agent.plain = undefined;
    await agent.send(agent.report());
    await agent.settled();
    passTime(SNAPSHOT_AGE_MS);
    await client.waitFor('moved');
    client.speak('o.').send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two');
  });

  const segment = { start: 0, end: 1, text: 'x', confidence: 1, logProbability: 0, words: [] };
  const totals = { model: 'm', revision: 'r', language: 'en', durationSeconds: 1, speechSeconds: 1 };
  const impossible: [string, (agentStream: AgentStream) => void][] = [
    ['silence', () => passTime(STREAM_SILENCE_MS + 1)],
    [
      'a record that does not open',
      (agentStream) => agentStream.sendRaw(new Uint8Array([20, ...new Array(20).fill(0)])),
    ],
    ['text', (agentStream) => agentStream.sendRaw('hello')],
    ['an event that is not understood', (agentStream) => agentStream.send({ type: 'sing' } as unknown as LinkEvent)],
    ['ready twice', (agentStream) => agentStream.ready('m')],
    ['heard beyond what was sent', (agentStream) => agentStream.send({ type: 'heard', position: 99, time: 1 })],
    ['a checkpoint beyond what was sent', (agentStream) => agentStream.checkpoint({ position: 99 })],
    ['a checkpoint that goes back', (agentStream) => agentStream.checkpoint({ position: 1, index: 0 })],
    ['a checkpoint without a segment', (agentStream) => agentStream.checkpoint({ index: 2 })],
    ['a state over its bound', (agentStream) => agentStream.checkpoint({ state: 'A'.repeat(5_000) })],
    [
      'a segment that leaves one out',
      (agentStream) => agentStream.send({ type: 'segment', index: 2, ending: 'endpoint', ...segment }),
    ],
    ['final before the end', (agentStream) => agentStream.send({ type: 'final', ...totals, segments: 1 })],
  ];

  it.each(impossible)('MUST 50: %s, and the agent is lost', async (_, act) => {
    const { client, agentStreams, agent } = await startClient();
    client.speak('one. tw');
    await client.waitFor('ack', ({ position }) => position === 4);
    await eventually(() => agentStreams[0]?.position === 7);
    act(agentStreams[0] as AgentStream);
    await eventually(() => agentStreams[0]?.closed);
    // The roster, too, forgets an agent after this silence.
    await agent.send(agent.report());
    passTime(SNAPSHOT_AGE_MS);
    await client.waitFor('moved');
    client.speak('o.').send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two');
  });

  it('MUST 50: a final that leaves out a segment is none', async () => {
    const { client, agentStreams } = await startClient({ finals: false });
    client.speak('one. two.').send({ type: 'end' });
    await eventually(() => control(agentStreams[0], 'end'));
    agentStreams[0]?.send({ type: 'final', ...totals, segments: 3 });
    const next = await eventually(() => agentStreams[1]);
    await eventually(() => control(next, 'end'));
    next.final();
    expect((await client.end()).code).toBe(1000);
    expect(client.transcript).toBe('one|two');
  });

  it('MUST 51: audio that breaks each recogniser stops after a few agents', async () => {
    const { client, agentStreams } = await startClient({
      before: (agentStream: AgentStream, said: object) => {
        const poison = 'text' in said && String(said.text).includes('!');
        if (poison) agentStream.send({ type: 'refusal', reason: 'engine_failed' });
        return poison;
      },
    });
    client.speak('fine.').speak(' poison!');
    expect((await client.end()).code).toBe(4502);
    expect(client.messages.at(-1)).toMatchObject({ reason: 'engine_failed' });
    expect(agentStreams).toHaveLength(STREAM_MOVES_MAX + 1);
    expect(client.transcript).toBe('fine');
  });

  it('MUST 52: a client that never returns ends its agent session', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    client.close(1000);
    await eventually(() => agentStreams[0]?.closed);
  });

  it('passes the format of the client to the agent unchanged', async () => {
    const { client, agentStreams } = await startClient({}, { format: { ...slow, channels: 2 }, language: 'en-GB' });
    expect(agentStreams[0]?.opened).toMatchObject({ format: { ...slow, channels: 2 }, language: 'en-GB' });
    client.close();
  });
});
