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
import { eventually, listen, type Talk } from '../../fake/stream-agent.ts';

async function startClient(habits = {}, start = {}, claims = {}) {
  const listener = await startListener(undefined, habits);
  const client = await StreamClient.connect('', claims);
  client.start(listener.name, start);
  await client.heard('ack');
  return { client, ...listener };
}

const kinds = (talk: Talk | undefined) => talk?.said.map((said) => ('kind' in said ? said.text : said.type)) ?? [];
const sentTo = (talk: Talk | undefined) =>
  Math.max(0, ...(talk?.said.flatMap((said) => ('kind' in said ? [said.position + said.text.length] : [])) ?? []));
const control = (talk: Talk | undefined, type: string) =>
  talk?.said.find((said) => !('kind' in said) && said.type === type);

describe('messages of the edge to an agent', () => {
  it('MUST 40: each dial has its own ticket for the remaining session', async () => {
    const { client, talks, agent } = await startClient({}, {}, { sessionSeconds: 100 });
    await passQuietly(30_000, talks[0], client);
    await agent.send(agent.report());
    await agent.settled();
    talks[0]?.cut();
    await client.heard('moved');
    const [first, second] = talks.map(({ ticket }) => ticket as { jti: string; deadlineMs: number; tenant: string });
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
    const { client, talks } = await startClient();
    client.speak('one').say({ type: 'finalize', id: 1 }).speak('two').say({ type: 'end' });
    await client.end();
    expect(kinds(talks[0])).toEqual(['open', 'one', 'finalize', 'two', 'end']);
    expect(talks[0]?.finals).toEqual([4]);
  });

  it('MUST 42: audio follows without a gap, split to fit a record', async () => {
    const { client, talks } = await startClient();
    const long = `${'_'.repeat(200_000)}one.`;
    client.speak(long).say({ type: 'end' });
    await client.end();
    const audio = talks[0]?.said.flatMap((said) => ('kind' in said ? [said] : [])) ?? [];
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
    const { client, talks } = await startClient({}, { format });
    const packets = ['one ', 'tw', 'o ', 'three'];
    for (const packet of packets) client.speak(packet);
    await eventually(() => talks[0]?.position === 13);
    talks[0]?.cut();
    await eventually(() => talks[1]?.position === 13);
    expect(kinds(talks[1])).toEqual(['open', ...packets]);
    client.close();
  });

  it('MUST 43: sends at most one window beyond the acknowledged position', async () => {
    const { client, talks } = await startClient({ heard: false });
    for (let sent = 0; sent < 2 * 1024 * 1024; sent += 100_000) client.speak('_'.repeat(100_000));
    client.say({ type: 'ping' });
    await client.heard('pong');
    const window = STREAM_WINDOW_BYTES;
    await eventually(() => sentTo(talks[0]) > window - 100_000);
    expect(sentTo(talks[0])).toBeLessThanOrEqual(window);
    talks[0]?.say({ type: 'heard', position: 100_000, time: 12.5 });
    await eventually(() => sentTo(talks[0]) > window);
    expect(sentTo(talks[0])).toBeLessThanOrEqual(window + 100_000);
    client.close();
  });

  it('MUST 44: requests and options keep their position between samples', async () => {
    const { client, talks } = await startClient();
    client
      .speak('ab')
      .say({ type: 'clear', id: 0 })
      .speak('cd')
      .say({ type: 'options', options: { interim: false } });
    client.speak('ef').say({ type: 'finalize', id: 0 }).speak('gh').say({ type: 'end' });
    await client.end();
    expect(kinds(talks[0])).toEqual(['open', 'ab', 'clear', 'cd', 'options', 'ef', 'finalize', 'gh', 'end']);
    expect(control(talks[0], 'clear')).toEqual({ type: 'clear', id: 0, position: 2 });
    expect(control(talks[0], 'finalize')).toEqual({ type: 'finalize', id: 0, position: 6 });
  });

  it('MUST 45: the next agent gets the last checkpoint and all later audio', async () => {
    const { client, talks } = await startClient({ checkpoints: false });
    client.speak('one. ');
    await eventually(() => talks[0]?.position === 5);
    talks[0]?.checkpoint({ position: 4, time: 4 / 8_000, state: 'c3RhdGU=' });
    await client.heard('ack', ({ position }) => position === 4);
    client.say({ type: 'options', options: { endpointingMs: false } }).speak('two');
    client.say({ type: 'finalize', id: 1 }).speak(' three');
    await client.heard('finalized');
    await eventually(() => talks[0]?.position === 14);
    talks[0]?.cut();
    await eventually(() => talks[1]?.position === 14);
    expect(talks[1]?.opened).toMatchObject({
      from: { position: 4, time: 4 / 8_000, index: 1, state: 'c3RhdGU=' },
      options: { interim: true, endpointingMs: 500 },
    });
    // The finalize was answered, but it cut the utterance: it is sent again at its position, and that answer
    // is dropped.
    expect(kinds(talks[1])).toEqual(['open', ' ', 'options', 'two', 'finalize', ' three']);
    client.say({ type: 'end' });
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
    await client.heard('ack');
    near.plain = () => Response.json({ reason: 'pool_busy' }, { status: 503 });
    here[0]?.cut();
    await eventually(() => near.requests >= 3);
    expect([there.length, far.requests]).toEqual([0, 0]);
    client.close();
  });

  it('MUST 49: another agent is ready before a draining one is left', async () => {
    const { client, talks, name, habits } = await startClient();
    client.speak('one. tw');
    await eventually(() => talks[0]?.position === 7);
    habits.ready = false;
    const other = await startAgent(name, { live: true, pool: 'aks-other' });
    listen(other, habits, talks);
    talks[0]?.say({ type: 'drain' });
    const next = await eventually(() => talks[1]);
    await eventually(() => next.opened);
    // The first session continues meanwhile.
    client.speak('o. thr');
    await client.heard('segment', ({ index }) => index === 1);
    expect(talks[0]?.closed).toBeUndefined();
    next.ready(name);
    await eventually(() => talks[0]?.closed);
    client.speak('ee.').say({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two|three');
    expect(client.all('moved')).toEqual([{ type: 'moved', agent: other.name }]);
  });

  it('MUST 49: losing a draining agent gets the full search time', async () => {
    const { client, talks, agent } = await startClient();
    client.speak('one. tw');
    await eventually(() => talks[0]?.position === 7);
    agent.plain = () => Response.json({ reason: 'pool_busy' }, { status: 503 });
    const { requests } = agent;
    talks[0]?.say({ type: 'drain' });
    await eventually(() => agent.requests > requests);
    await passQuietly(STREAM_MOVE_MS - 5_000, talks[0], client);
    talks[0]?.cut();
    await eventually(() => talks[0]?.closed);
    const { length } = client.messages;
    client.say({ type: 'ping' });
    await eventually(() => client.messages.length > length);
    passTime(10_000);
    agent.plain = undefined;
    await agent.send(agent.report());
    await agent.settled();
    passTime(SNAPSHOT_AGE_MS);
    await client.heard('moved');
    client.speak('o.').say({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two');
  });

  const segment = { start: 0, end: 1, text: 'x', confidence: 1, logProbability: 0, words: [] };
  const totals = { model: 'm', revision: 'r', language: 'en', durationSeconds: 1, speechSeconds: 1 };
  const impossible: [string, (talk: Talk) => void][] = [
    ['silence', () => passTime(STREAM_SILENCE_MS + 1)],
    ['a record that does not open', (talk) => talk.sayRaw(new Uint8Array([20, ...new Array(20).fill(0)]))],
    ['text', (talk) => talk.sayRaw('hello')],
    ['an event that is not understood', (talk) => talk.say({ type: 'sing' } as unknown as LinkEvent)],
    ['ready twice', (talk) => talk.ready('m')],
    ['heard beyond what was sent', (talk) => talk.say({ type: 'heard', position: 99, time: 1 })],
    ['a checkpoint beyond what was sent', (talk) => talk.checkpoint({ position: 99 })],
    ['a checkpoint that goes back', (talk) => talk.checkpoint({ position: 1, index: 0 })],
    ['a checkpoint without a segment', (talk) => talk.checkpoint({ index: 2 })],
    ['a state over its bound', (talk) => talk.checkpoint({ state: 'A'.repeat(5_000) })],
    [
      'a segment that leaves one out',
      (talk) => talk.say({ type: 'segment', index: 2, ending: 'endpoint', ...segment }),
    ],
    ['final before the end', (talk) => talk.say({ type: 'final', ...totals, segments: 1 })],
  ];

  it.each(impossible)('MUST 50: %s, and the agent is lost', async (_, act) => {
    const { client, talks, agent } = await startClient();
    client.speak('one. tw');
    await client.heard('ack', ({ position }) => position === 4);
    await eventually(() => talks[0]?.position === 7);
    act(talks[0] as Talk);
    await eventually(() => talks[0]?.closed);
    // The roster, too, forgets an agent after this silence.
    await agent.send(agent.report());
    passTime(SNAPSHOT_AGE_MS);
    await client.heard('moved');
    client.speak('o.').say({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two');
  });

  it('MUST 50: a final that leaves out a segment is none', async () => {
    const { client, talks } = await startClient({ finals: false });
    client.speak('one. two.').say({ type: 'end' });
    await eventually(() => control(talks[0], 'end'));
    talks[0]?.say({ type: 'final', ...totals, segments: 3 });
    const next = await eventually(() => talks[1]);
    await eventually(() => control(next, 'end'));
    next.final();
    expect((await client.end()).code).toBe(1000);
    expect(client.transcript).toBe('one|two');
  });

  it('MUST 51: audio that breaks each recogniser stops after a few agents', async () => {
    const { client, talks } = await startClient({
      before: (talk: Talk, said: object) => {
        const poison = 'text' in said && String(said.text).includes('!');
        if (poison) talk.say({ type: 'refusal', reason: 'engine_failed' });
        return poison;
      },
    });
    client.speak('fine.').speak(' poison!');
    expect((await client.end()).code).toBe(4502);
    expect(client.messages.at(-1)).toMatchObject({ reason: 'engine_failed' });
    expect(talks).toHaveLength(STREAM_MOVES_MAX + 1);
    expect(client.transcript).toBe('fine');
  });

  it('MUST 52: a client that never returns ends its agent session', async () => {
    const { client, talks } = await startClient();
    client.speak('one. tw');
    await eventually(() => talks[0]?.position === 7);
    client.close(1000);
    await eventually(() => talks[0]?.closed);
  });

  it('passes the format of the client to the agent unchanged', async () => {
    const { client, talks } = await startClient({}, { format: { ...slow, channels: 2 }, language: 'en-GB' });
    expect(talks[0]?.opened).toMatchObject({ format: { ...slow, channels: 2 }, language: 'en-GB' });
    client.close();
  });
});
