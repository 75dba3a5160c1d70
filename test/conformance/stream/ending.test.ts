import { describe, expect, it } from 'vitest';
import { STREAM_CONTROL_CHARACTERS } from '../../../edge/protocol/read-text.ts';
import { STREAM_FINISH_MS, STREAM_IDLE_MS } from '../../../edge/stream/limits.ts';
import { STREAM_START_MS, STREAM_UNSTARTED_MS } from '../../../edge/stream/stream.ts';
import { STREAM_SESSION_S } from '../../../edge/stream/stream-start.ts';
import { makeToken } from '../../edge/authority.ts';
import { StreamClient } from '../../edge/stream-client.ts';
import { passQuietly, startListener } from '../../edge/stream-listener.ts';
import { passTime } from '../../fake/network.ts';
import { eventually } from '../../fake/stream-agent.ts';

async function startClient(habits = {}, claims = {}) {
  const listener = await startListener(undefined, habits);
  const client = await StreamClient.connect('', claims);
  client.start(listener.name);
  await client.waitFor('ack');
  return { client, ...listener };
}

describe('ending', () => {
  it('MUST 22: after end sends the rest, final and 1000; ignores audio', async () => {
    const { client } = await startClient();
    client.speak('one. two').send({ type: 'end' }).speak(' three.');
    const { code } = await client.end();
    expect(code).toBe(1000);
    expect(client.transcript).toBe('one|two');
    expect(client.messages.at(-1)).toMatchObject({ type: 'final', segments: 2 });
  });

  it('the rest may take as long as it makes progress', async () => {
    const { client, agentStreams } = await startClient({ finals: false, checkpoints: false });
    client.speak('one. two.').send({ type: 'end' });
    await eventually(() => agentStreams[0]?.messages.some((said) => !('kind' in said) && said.type === 'end'));
    const most = STREAM_FINISH_MS;
    await passQuietly(most - 20_000, agentStreams[0], client);
    agentStreams[0]?.checkpoint({ position: 4, time: 4 / 8_000, index: 1 });
    await client.waitFor('ack', ({ position }) => position === 4);
    await passQuietly(most - 20_000, agentStreams[0], client);
    expect(client.ended).toBeUndefined();
    await passQuietly(30_000, agentStreams[0]);
    expect((await client.end()).code).toBe(4504);
  });

  it('MUST 23: sends reason, text and request id before closing on refusal', async () => {
    const { client } = await startClient();
    client.speak('x', 99);
    const { reason } = await client.end();
    const [refusal] = client.all('refusal');
    expect(refusal).toEqual({
      type: 'refusal',
      reason: 'frame_invalid',
      message: 'The message is not valid: audio is missing before position 99.',
      request: expect.stringMatching(/^[\w-]{36}$/),
    });
    expect(reason).toBe(`frame_invalid ${String(refusal?.request)}`);
    expect(client.messages.at(-1)).toBe(refusal);
  });

  it.each([
    ['no JSON', 'hello', 'frame_invalid', 4400],
    ['no object', '17', 'frame_invalid', 4400],
    ['an unknown type', { type: 'sing' }, 'frame_invalid', 4400],
    ['a wrong member', { type: 'finalize', id: 'one' }, 'frame_invalid', 4400],
    ['no position', new Uint8Array(5), 'frame_invalid', 4400],
    ['a long text', { type: 'ping', more: 'x'.repeat(STREAM_CONTROL_CHARACTERS) }, 'message_too_large', 4413],
  ])('MUST 24: %s is refused', async (_, message, reason, code) => {
    const { client } = await startClient();
    client.send(message);
    expect((await client.end()).code).toBe(code);
    expect(client.all('refusal')).toMatchObject([{ reason }]);
  });

  it('MUST 25: a client close with 1000 ends the session', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('one. two');
    await client.waitFor('segment');
    client.close(1000);
    await eventually(() => agentStreams[0]?.closed);
    const { session } = client.all('started')[0] as unknown as { session: string };
    const again = await StreamClient.connect(`?session=${session}`);
    again.start(agentStreams[0]?.opened?.model ?? '', { resume: client.resume, next: 1 });
    // The session continues from the token, at an agent that begins there.
    expect(await again.waitFor('started')).toMatchObject({ position: 4 });
    await eventually(() => agentStreams.length === 2);
    again.close();
  });

  it('MUST 26: a client silent for a minute is closed after all results', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('one. two');
    await client.waitFor('segment');
    await passQuietly(STREAM_IDLE_MS - 2_000, agentStreams[0]);
    expect(client.ended).toBeUndefined();
    await passQuietly(2_001, agentStreams[0]);
    const { code } = await client.end();
    expect(code).toBe(4408);
    expect(client.transcript).toBe('one|two');
    expect(client.messages.at(-1)).toMatchObject({
      reason: 'stream_idle',
      message: expect.stringContaining('60 seconds'),
    });
  });

  it('MUST 26: sooner with a shorter idle limit in the token', async () => {
    const { client, agentStreams } = await startClient({}, { idleSeconds: 15 });
    client.speak('one. two');
    await client.waitFor('segment');
    await passQuietly(14_000, agentStreams[0]);
    expect(client.ended).toBeUndefined();
    await passQuietly(2_000, agentStreams[0]);
    expect((await client.end()).code).toBe(4408);
    expect(client.messages.at(-1)).toMatchObject({ message: expect.stringContaining('15 seconds') });
  });

  it('MUST 26: a client that pings stays', async () => {
    const { client, agentStreams } = await startClient();
    await passQuietly(2 * STREAM_IDLE_MS, agentStreams[0], client);
    client.speak('still here.').send({ type: 'end' });
    expect((await client.end()).code).toBe(1000);
  });

  it('MUST 26: a client that pings and never starts is closed', async () => {
    const client = await StreamClient.connect('');
    const most = STREAM_UNSTARTED_MS;
    await passQuietly(most - 2_000, undefined, client);
    expect(client.ended).toBeUndefined();
    await passQuietly(2_001, undefined, client);
    expect((await client.end()).code).toBe(4408);
    expect(client.all('refusal')).toMatchObject([{ reason: 'stream_idle' }]);
  });

  it.each([
    ['the claim', { sessionSeconds: 40 }, 40],
    ['the limit', { sessionSeconds: 86_400 }, STREAM_SESSION_S],
  ])('MUST 27: ends a session at the limit of %s, with a warning', async (_, claims, seconds) => {
    const { client, agentStreams } = await startClient({}, claims);
    client.speak('one. two');
    await client.waitFor('segment');
    await passQuietly((seconds - 5) * 1_000, agentStreams[0], client);
    const ending = await client.waitFor('ending');
    expect(Number(ending.seconds)).toBeGreaterThanOrEqual(1);
    expect(Number(ending.seconds)).toBeLessThanOrEqual(10);
    await passQuietly(6_000, agentStreams[0], client);
    expect((await client.end()).code).toBe(4413);
    expect(client.transcript).toBe('one|two');
    expect(client.messages.at(-1)).toMatchObject({ reason: 'stream_too_long' });
  });

  it('MUST 27: the limit counts audio, so faster sending gains no time', async () => {
    const { client } = await startClient({}, { sessionSeconds: 30 });
    client.speak('_'.repeat(200_000)).speak('one.').speak('_'.repeat(40_000));
    expect((await client.end()).code).toBe(4413);
    expect(client.transcript).toBe('one');
  });

  it('MUST 28: token expiry ends no session but prevents a resume', async () => {
    const { name, agentStreams } = await startListener();
    const token = await makeToken({}, 20);
    const client = await StreamClient.connect('', {}, { authorization: `Bearer ${token}` });
    client.start(name).speak('one. ');
    await client.waitFor('segment');
    passTime(55_000);
    client.speak('two. th');
    await client.waitFor('segment', ({ index }) => index === 1);
    const { session } = client.all('started')[0] as unknown as { session: string };
    client.drop();
    const late = await StreamClient.connect(`?session=${session}`, {}, { authorization: `Bearer ${token}` });
    expect((await late.end()).code).toBe(4401);
    const fresh = await StreamClient.connect(`?session=${session}`);
    fresh.start(name, { resume: client.resume, next: 2 });
    const { position } = await fresh.waitFor('started');
    fresh.speak('ree.', Number(position)).send({ type: 'end' });
    await fresh.end();
    expect(fresh.transcript).toBe('three');
    expect(agentStreams).toHaveLength(1);
  });

  it('MUST 28: refuses a start with a token expired after the upgrade', async () => {
    const token = await makeToken({}, 1);
    const client = await StreamClient.connect('', {}, { authorization: `Bearer ${token}` });
    passTime(STREAM_START_MS - 1_000);
    client.send({ type: 'ping' });
    await client.waitFor('pong');
    passTime(1_001);
    expect((await client.end()).code).toBe(4401);
    expect(client.all('refusal')).toMatchObject([{ reason: 'token_expired' }]);
  });

  it('MUST 28: a narrower token continues within its own limits', async () => {
    const { client, name, agentStreams } = await startClient();
    client.speak('one. tw');
    await client.waitFor('segment');
    await client.waitFor('ack', ({ position }) => position === 4);
    const { session } = client.all('started')[0] as unknown as { session: string };
    client.drop();
    const again = await StreamClient.connect(`?session=${session}`, { sessionSeconds: 40 });
    again.start(name, { resume: client.resume, next: 1 });
    expect(await again.waitFor('started')).toMatchObject({ position: 4 });
    await eventually(() => agentStreams.length === 2);
    again.speak('two. ', 4);
    await again.waitFor('segment');
    await passQuietly(41_000, agentStreams[1], again);
    expect((await again.end()).code).toBe(4413);
  });
});
