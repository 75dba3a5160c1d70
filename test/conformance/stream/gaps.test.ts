// Gaps are of clients that count no positions: here one that speaks as Deepgram's do.
import { describe, expect, it } from 'vitest';
import { limits } from '../../../shared/limits.ts';
import { makeToken } from '../../edge/authority.ts';
import { ask, passTime } from '../../edge/network.ts';
import { StreamClient } from '../../edge/stream-client.ts';
import { eventually, type Talk } from '../../edge/stream-double.ts';
import { startListener } from '../../edge/stream-listener.ts';

const encoder = new TextEncoder();

async function connect(model: string, session: string, claims: Record<string, unknown> = {}): Promise<StreamClient> {
  const headers = {
    upgrade: 'websocket',
    authorization: `Token ${await makeToken(claims)}`,
    'x-deepgram-session-id': session,
  };
  return StreamClient.of(await ask(`/v1/listen?model=${model}&encoding=mulaw&sample_rate=8000`, { headers }));
}

const gapsOf = (talk: Talk | undefined) => talk?.said.filter((said) => !('kind' in said) && said.type === 'gap') ?? [];

/** Texts of the results that are final, and when they began. */
const results = (client: StreamClient) =>
  client
    .all('Results')
    .map(
      (message) =>
        message as unknown as { is_final: boolean; start: number; channel: { alternatives: { transcript: string }[] } },
    )
    .filter(({ is_final, channel }) => is_final && channel.alternatives[0]?.transcript !== '')
    .map(({ start, channel }) => ({ text: channel.alternatives[0]?.transcript, start }));

describe('C10 R1 gaps', () => {
  it('MUST 48: a client without positions comes back: the time it was away is missing, and times go on', async () => {
    const { name, talks } = await startListener();
    const session = crypto.randomUUID();
    const client = await connect(name, session);
    const spokeAt = Date.now();
    client.say(encoder.encode(`one.${'_'.repeat(7_996)}`));
    await eventually(() => talks[0]?.position === 8_000 && results(client).length === 1);
    client.drop();
    await eventually(() => client.ended);
    passTime(5_000);
    const again = await connect(name, session);
    again.say(encoder.encode('two.')).say({ type: 'CloseStream' });
    expect((await again.end()).code).toBe(1000);
    const sinceSeconds = (Date.now() - spokeAt) / 1_000;
    expect(talks).toHaveLength(1);
    const [gap, ...more] = gapsOf(talks[0]) as { position: number; seconds: number }[];
    expect(more).toEqual([]);
    expect(gap?.position).toBe(8_000);
    expect(gap?.seconds).toBeGreaterThanOrEqual(5);
    // By the same clock, however slow the machine is: it counts from what was said last.
    expect(gap?.seconds).toBeLessThanOrEqual(sinceSeconds);
    expect(results(client)).toEqual([{ text: 'one', start: 0 }]);
    expect(results(again)).toMatchObject([{ text: 'two' }]);
    expect(results(again)[0]?.start).toBeCloseTo(1 + (gap?.seconds ?? 0), 2);
  });

  it('the same when the edge still thinks that the first connection is alive', async () => {
    const { name, talks } = await startListener();
    const session = crypto.randomUUID();
    const client = await connect(name, session);
    client.say(encoder.encode('one. tw'));
    await eventually(() => talks[0]?.position === 7);
    passTime(2_000);
    const again = await connect(name, session);
    again.say(encoder.encode('o.')).say({ type: 'CloseStream' });
    await again.end();
    expect(talks).toHaveLength(1);
    expect(gapsOf(talks[0])).toHaveLength(1);
    await eventually(() => client.ended);
  });

  it('what was told to a client that was gone already is told again, and what it had is not', async () => {
    const { name, talks } = await startListener();
    const session = crypto.randomUUID();
    const client = await connect(name, session);
    client.say(encoder.encode('one. two'));
    await eventually(() => talks[0]?.position === 8 && results(client).length === 1);
    passTime(1_000);
    talks[0]?.say({ type: 'speech_ended', at: 0.001 });
    talks[0]?.cutUtterance();
    await eventually(() => results(client).length === 2);
    const again = await connect(name, session);
    again.say(encoder.encode('three.')).say({ type: 'CloseStream' });
    await again.end();
    expect(results(again).map(({ text }) => text)).toEqual(['two', 'three']);
    expect(results(again)[0]).toEqual(results(client)[1]);
  });

  it('two connections that speak at once under one name are two sessions', async () => {
    const { name, talks } = await startListener();
    const session = crypto.randomUUID();
    const [one, two] = [await connect(name, session), await connect(name, session)];
    one.say(encoder.encode('one.')).say({ type: 'CloseStream' });
    two.say(encoder.encode('two.')).say({ type: 'CloseStream' });
    await Promise.all([one.end(), two.end()]);
    expect([results(one), results(two)]).toMatchObject([[{ text: 'one' }], [{ text: 'two' }]]);
    expect(talks).toHaveLength(2);
    expect(talks.flatMap(gapsOf)).toEqual([]);
  });

  it('another subject of the tenant does not come into the session by its name', async () => {
    const { name, talks } = await startListener();
    const session = crypto.randomUUID();
    const client = await connect(name, session);
    client.say(encoder.encode('secr'));
    await eventually(() => talks[0]?.position === 4);
    client.drop();
    await eventually(() => client.ended);
    const thief = await connect(name, session, { sub: 'mallory' });
    thief.say(encoder.encode('et.')).say({ type: 'CloseStream' });
    await thief.end();
    expect(results(thief)).toMatchObject([{ text: 'et', start: 0 }]);
    expect(talks).toHaveLength(2);
  });

  it('MUST 48: audio that is not taken is missing at its place', async () => {
    let hold = true;
    const { name, talks } = await startListener(undefined, { before: (_, said) => hold && 'kind' in said });
    const client = await connect(name, crypto.randomUUID());
    const half = encoder.encode('_'.repeat(512 * 1024));
    const ring = limits.streamRingBytes.value;
    for (let sent = 0; sent < ring; sent += half.length) client.say(half);
    client.say(encoder.encode('lost.'.repeat(1_600))).say({ type: 'KeepAlive' });
    const window = limits.streamWindowBytes.value;
    await eventually(() =>
      talks[0]?.said.some((said) => 'kind' in said && said.position + said.text.length === window),
    );
    hold = false;
    talks[0]?.settle(window);
    await eventually(() => talks[0]?.position === ring);
    client.say(encoder.encode('heard.')).say({ type: 'CloseStream' });
    await client.end();
    expect(gapsOf(talks[0])).toEqual([{ type: 'gap', position: ring, seconds: 1 }]);
    expect(results(client)).toMatchObject([{ text: 'heard' }]);
    expect(results(client)[0]?.start).toBeCloseTo(ring / 8_000 + 1, 2);
  });
});
