import { describe, expect, it, vi } from 'vitest';
import { STREAM_BUFFERED_EVENTS_MAX } from '../../../edge/stream/client-sender.ts';
import { STREAM_CLOSE_TIMEOUT_MS } from '../../../edge/stream/closing-sockets.ts';
import { STREAM_SILENCE_MS } from '../../../edge/stream/deadlines.ts';
import { SESSION_CONNECTIONS_MAX } from '../../../edge/stream/ended-sessions.ts';
import { STREAM_RESUME_MS, STREAM_STORED_SEGMENTS } from '../../../edge/stream/limits.ts';
import { CLOSING_SOCKETS_MAX } from '../../../edge/stream/sockets.ts';
import { StreamClient, slow } from '../../edge/stream-client.ts';
import { forgetSession, modelName, passQuietly, startListener } from '../../edge/stream-listener.ts';
import { passTime, startAgent } from '../../fake/network.ts';
import { eventually } from '../../fake/stream-agent.ts';

async function startClient(habits = {}) {
  const listener = await startListener(undefined, habits);
  const client = await StreamClient.connect();
  client.start(listener.name);
  await client.waitFor('ack');
  const session = String(client.all('started')[0]?.session);
  const comeBack = async (next: number, change: object = {}, claims: object = {}, resume = client.resume) => {
    const again = await StreamClient.connect(`?session=${session}`, { ...claims });
    again.start(listener.name, { resume, next, ...change });
    return again;
  };
  return { client, session, comeBack, ...listener };
}

const texts = (client: StreamClient) => client.all('segment').map(({ index, text }) => `${index} ${text}`);

describe('C10 coming back', () => {
  it('MUST 29: started names the position, also within a word', async () => {
    const { client, comeBack, agentStreams } = await startClient();
    client.speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    await client.waitFor('segment');
    client.drop();
    const again = await comeBack(1);
    expect(await again.waitFor('started')).toMatchObject({ position: 7, time: 7 / 8_000 });
    again.speak('o.', 7).send({ type: 'end' });
    expect((await again.end()).code).toBe(1000);
    expect(texts(again)).toEqual(['1 two']);
    expect(agentStreams).toHaveLength(1);
    expect(again.all('gap')).toEqual([]);
  });

  it('MUST 30: repeats every segment the client lacks, and no other', async () => {
    const { client, comeBack } = await startClient();
    client.speak('one. two. three. ');
    await client.waitFor('segment', ({ index }) => index === 2);
    client.drop();
    const again = await comeBack(1);
    await again.waitFor('started');
    again.speak('four.', 17).send({ type: 'end' });
    await again.end();
    expect(texts(again)).toEqual(['1 two', '2 three', '3 four']);
  });

  it('MUST 30: repeats segments beyond the buffer from the token', async () => {
    const { client, comeBack } = await startClient();
    const count = STREAM_STORED_SEGMENTS + 10;
    client.speak('one. ');
    await client.waitFor('ack', ({ position }) => Number(position) > 0);
    const old = client.resume;
    const rest = Array.from({ length: count }, (_, at) => `n${at}.`).join('');
    client.speak(rest);
    await client.waitFor('segment', ({ index }) => index === count);
    client.drop();
    const again = await comeBack(1, {}, {}, old);
    expect(await again.waitFor('started')).toMatchObject({ position: 4 });
    again.speak(` ${rest}`, 4).send({ type: 'end' });
    await again.end();
    expect(texts(again)).toHaveLength(count);
    expect(texts(again)[0]).toBe('1 n0');
  });

  it('MUST 31: replaces a connection that seems alive, and notifies it', async () => {
    const { client, comeBack, agentStreams } = await startClient();
    client.speak('one. tw');
    await client.waitFor('segment');
    await eventually(() => agentStreams[0]?.position === 7);
    const again = await comeBack(1);
    expect((await client.end()).code).toBe(4409);
    expect(client.all('refusal')).toMatchObject([{ reason: 'stream_replaced' }]);
    await again.waitFor('started');
    again.speak('o.', 7).send({ type: 'end' });
    await again.end();
    expect(texts(again)).toEqual(['1 two']);
  });

  it('MUST 31: as often as it likes', async () => {
    const { client, comeBack, agentStreams } = await startClient();
    const clients = [client];
    for (let round = 0; round <= SESSION_CONNECTIONS_MAX; round++) {
      const again = await comeBack(0);
      await again.waitFor('started');
      clients.push(again);
    }
    for (const earlier of clients.slice(0, -1)) expect((await earlier.end()).code).toBe(4409);
    clients.at(-1)?.speak('still one.').send({ type: 'end' });
    await clients.at(-1)?.end();
    expect(clients.at(-1)?.transcript).toBe('still one');
    expect(agentStreams).toHaveLength(1);
  });

  it('silent connections block no other client', async () => {
    const { client, comeBack, session } = await startClient();
    const mute: StreamClient[] = [];
    for (let made = 0; made < SESSION_CONNECTIONS_MAX; made++) {
      mute.push(await StreamClient.connect(`?session=${session}`));
    }
    client.drop();
    const again = await comeBack(0);
    await again.waitFor('started');
    expect((await mute[0]?.end())?.code).toBe(4503);
    expect(mute[0]?.all('refusal')).toMatchObject([{ reason: 'edge_busy' }]);
    again.close();
    for (const one of mute) one.close();
  });

  it.each([
    ['another tenant', {}, { tenant: 'globex' }],
    ['another subject', {}, { sub: 'mallory' }],
    ['another format', { format: { ...slow, rate: 16_000 } }, {}],
    ['a token that was changed', { resume: 'A'.repeat(200) }, {}],
    ['a token of another session', {}, {}],
  ])('MUST 32: %s is refused', async (what, change, claims) => {
    const { client, comeBack, name } = await startClient();
    let again: StreamClient;
    if (what === 'a token of another session') {
      const other = await StreamClient.connect('?session=something-else');
      again = other.start(name, { resume: client.resume, next: 0 });
    } else again = await comeBack(0, change, claims);
    expect((await again.end()).code).toBe(4400);
    expect(again.all('refusal')).toMatchObject([{ reason: 'resume_invalid' }]);
    client.speak('unharmed.').send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('unharmed');
  });

  it('MUST 32: refuses the token of a session with a delivered end only', async () => {
    const { client, comeBack } = await startClient();
    client.answers = false;
    client.speak('one. two').send({ type: 'end' });
    expect((await client.end()).code).toBe(1000);
    const again = await comeBack(1);
    again.send({ type: 'end' });
    expect((await again.end()).code).toBe(1000);
    expect(again.all('final')).toHaveLength(1);
    const refused = async (): Promise<StreamClient> => {
      const next = await comeBack(1);
      next.send({ type: 'end' });
      return (await next.end()).code === 1000 ? refused() : next;
    };
    const late = await refused();
    expect(late.all('refusal')).toMatchObject([{ reason: 'resume_invalid' }]);
  });

  it('MUST 32: an unservable token ends no live session', async () => {
    // A zone with an empty roster may be down for a moment; this one serves another model.
    await startAgent(modelName(), { zone: 'us' });
    const { client, comeBack } = await startClient();
    const weaker = await comeBack(0, {}, { zones: ['us'] });
    expect((await weaker.end()).code).toBe(4403);
    expect(weaker.all('refusal')).toMatchObject([{ reason: 'residency_mismatch' }]);
    client.speak('unharmed.').send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('unharmed');
  });

  it('silent connections count against the concurrent requests of a tenant', async () => {
    const claims = { tenant: `t-${crypto.randomUUID()}`, allowance: { requestsAtOnce: 2 } };
    const mute = [await StreamClient.connect('', claims), await StreamClient.connect('', claims)];
    const third = await StreamClient.connect('', claims);
    expect((await third.end()).code).toBe(4429);
    expect(third.all('refusal')).toMatchObject([{ reason: 'allowance_concurrent' }]);
    mute[0]?.close();
    const room = async (): Promise<StreamClient> => {
      const next = await StreamClient.connect('', claims);
      next.send({ type: 'ping' });
      await eventually(() => next.all('pong').length > 0 || next.ended);
      return next.ended ? room() : next;
    };
    (await room()).close();
    mute[1]?.close();
  });

  it('MUST 39: bounds refused sockets of a tenant until they close', async () => {
    const requestsAtOnce = 2;
    const claims = { tenant: `t-${crypto.randomUUID()}`, allowance: { requestsAtOnce } };
    const accepted: StreamClient[] = [];
    const most = 2 * requestsAtOnce + CLOSING_SOCKETS_MAX;
    const dial = () => StreamClient.connect('', claims);
    while (accepted.length < most) {
      const client = await dial();
      client.answers = false;
      accepted.push(client);
    }
    for (let more = 0; more < 3; more++) await expect(dial()).rejects.toThrow(/^429 .*allowance_concurrent/);
    passTime(STREAM_CLOSE_TIMEOUT_MS);
    const again = await vi.waitUntil(() => dial().catch(() => undefined), { timeout: 8_000 });
    for (const client of [again, ...accepted]) client.close();
  });

  it('MUST 39: refuses dials by HTTP while closing sockets are overdue', async () => {
    const { client, session, agentStreams } = await startClient();
    const dial = () => StreamClient.connect(`?session=${session}`);
    const silent: StreamClient[] = [];
    while (silent.length < 2 * SESSION_CONNECTIONS_MAX) {
      const next = await dial();
      next.answers = false;
      silent.push(next);
    }
    await passQuietly(STREAM_CLOSE_TIMEOUT_MS + STREAM_SILENCE_MS + 1_000, agentStreams[0], client);
    for (let more = 0; more < 3; more++) await expect(dial()).rejects.toThrow(/^503 .*edge_busy/);
    client.speak('unharmed').send({ type: 'end' });
    expect((await client.end()).code).toBe(1000);
    for (const one of silent) one.close();
  });

  it('MUST 33: an edge without the session resumes from the token', async () => {
    const { client, comeBack, session, agentStreams } = await startClient();
    client.speak('one. two. thr');
    await eventually(() => agentStreams[0]?.position === 13);
    await client.waitFor('ack', ({ position }) => position === 9);
    await forgetSession(`acme/${session}`);
    const again = await comeBack(2);
    expect(await again.waitFor('started')).toMatchObject({ position: 9, time: 9 / 8_000 });
    again.speak(' three.', 9).send({ type: 'end' });
    await again.end();
    expect(texts(again)).toEqual(['2 three']);
    expect(agentStreams[1]?.opened?.from).toEqual({ position: 9, time: 9 / 8_000, index: 2, state: '' });
  });

  it('sends no interim of a segment finished while disconnected', async () => {
    const { client, comeBack, agentStreams } = await startClient({ interims: true });
    client.speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    const [agentStream] = agentStreams;
    client.drop();
    await eventually(() => client.ended);
    const word = { word: 'tw', start: 0, end: 0.001, confidence: 0.9 };
    const about = { index: 1, start: 0, end: 0.001, text: 'tw', confidence: 0.9 };
    agentStream?.send({ type: 'interim', ...about, words: [word], stable: 0 });
    agentStream?.cutUtterance();
    await eventually(() => agentStream?.idle);
    const again = await comeBack(1);
    await again.waitFor('started');
    again.speak('o.', 7).send({ type: 'end' });
    await again.end();
    expect(again.all('interim').filter(({ index }) => index === 1)).toEqual([]);
    expect(texts(again)[0]).toBe('1 tw');
  });

  it('MUST 34: buffers events while disconnected, including final', async () => {
    const { client, comeBack, agentStreams } = await startClient({ finals: false });
    client.speak('one. two. three').send({ type: 'end' });
    await eventually(() => agentStreams[0]?.messages.some((said) => !('kind' in said) && said.type === 'end'));
    client.drop();
    await eventually(() => client.ended);
    agentStreams[0]?.final();
    await eventually(() => agentStreams[0]?.closed);
    const again = await comeBack(1);
    expect((await again.end()).code).toBe(1000);
    expect(texts(again)).toEqual(['1 two', '2 three']);
    expect(again.messages.at(-1)).toMatchObject({ type: 'final', segments: 3 });
  });

  it('a session that overflows the buffer of a disconnected client ends', async () => {
    const { client, agentStreams } = await startClient();
    client.drop();
    await eventually(() => client.ended);
    for (let at = 0; at <= STREAM_BUFFERED_EVENTS_MAX; at++) agentStreams[0]?.send({ type: 'speech_started', at });
    // No time has passed, so the cause is not the absence of the client.
    await eventually(() => agentStreams[0]?.closed);
  });

  it('MUST 35: a session whose client never returns ends', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('one. tw');
    await eventually(() => agentStreams[0]?.position === 7);
    client.drop();
    await eventually(() => client.ended);
    await passQuietly(STREAM_RESUME_MS - 2_000, agentStreams[0]);
    expect(agentStreams[0]?.closed).toBeUndefined();
    passTime(3_000);
    await eventually(() => agentStreams[0]?.closed);
  });
});
