import { describe, expect, it } from 'vitest';
import { STREAM_UNREAD_BYTES } from '../../../edge/stream/unread-limit.ts';
import type { LinkEvent } from '../../../shared/stream/link.ts';
import { StreamClient } from '../../edge/stream-client.ts';
import { startListener } from '../../edge/stream-listener.ts';
import { eventually } from '../../fake/stream-agent.ts';

async function startClient(habits = {}, start = {}) {
  const listener = await startListener(undefined, habits);
  const client = await StreamClient.connect();
  client.start(listener.name, start);
  await client.waitFor('ack');
  return { client, ...listener };
}

/** An event of 30 kB. */
const long: LinkEvent = {
  type: 'interim',
  ...{ index: 0, start: 0, end: 1, text: '', stable: 0, confidence: 0.5 },
  words: [{ word: 'x'.repeat(30_000), start: 0, end: 1, confidence: 0.5 }],
};

describe('asking', () => {
  it('MUST 16: finalize is answered after the segments of everything before it', async () => {
    const { client } = await startClient();
    client.speak('one. two').send({ type: 'finalize', id: 7 }).speak(' three');
    await client.waitFor('finalized');
    expect(client.messages.at(-1)).toMatchObject({ type: expect.stringMatching(/finalized|ack/) });
    expect(client.receivedBefore('finalized')).toEqual(['one', 'two']);
    expect(client.all('finalized')).toEqual([{ type: 'finalized', id: 7 }]);
    client.send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two|three');
  });

  it('MUST 17: cleared audio is in no segment', async () => {
    const { client } = await startClient();
    client.speak('keep. forget').send({ type: 'clear', id: 3 }).speak(' this.');
    expect(await client.waitFor('cleared')).toEqual({ type: 'cleared', id: 3 });
    client.send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('keep|this');
  });

  it('MUST 18: a lost answer is repeated without another effect', async () => {
    const { client, agentStreams } = await startClient();
    client.speak('one').send({ type: 'finalize', id: 1 });
    await client.waitFor('finalized');
    client.speak(' two').send({ type: 'finalize', id: 1 });
    await eventually(() => client.all('finalized').length === 2);
    client.speak(' three').send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('one|two three');
    expect(agentStreams[0]?.messages.filter((said) => !('kind' in said) && said.type === 'finalize')).toHaveLength(1);
  });

  it('MUST 19: options hold from their position and leave other options unchanged', async () => {
    const { client, agentStreams } = await startClient({}, { options: { endpointingMs: 700 } });
    client
      .speak('one')
      .send({ type: 'options', options: { interim: false } })
      .speak('two')
      .send({ type: 'end' });
    await client.end();
    expect(agentStreams[0]?.opened?.options).toEqual({ interim: true, endpointingMs: 700 });
    const said = agentStreams[0]?.messages.slice(1, 4).map((one) => ('kind' in one ? one.text : one));
    expect(said).toEqual(['one', { type: 'options', options: { interim: false, endpointingMs: 700 } }, 'two']);
  });

  it('MUST 20: ping is answered', async () => {
    const { client } = await startClient();
    client.send({ type: 'ping' });
    expect(await client.waitFor('pong')).toEqual({ type: 'pong' });
    client.close();
  });

  it('MUST 21: a client that stops reading is closed', async () => {
    const { client, agentStreams } = await startClient();
    client.send({ type: 'ping', seen: 1 });
    await client.waitFor('pong');
    const enough = Math.ceil(STREAM_UNREAD_BYTES / 30_000) + 2;
    for (let sent = 0; sent < enough; sent++) agentStreams[0]?.send(long);
    expect((await client.end()).code).toBe(4408);
    expect(client.all('refusal')).toMatchObject([{ reason: 'reader_slow' }]);
  });

  it('a client that reads may receive any number of events', async () => {
    const { client, agentStreams } = await startClient();
    for (let round = 0; round < 4; round++) {
      for (let sent = 0; sent < 15; sent++) agentStreams[0]?.send(long);
      await eventually(() => client.all('interim').length === (round + 1) * 15);
      client.send({ type: 'ping', seen: client.messages.length });
      await eventually(() => client.all('pong').length === round + 1);
    }
    client.send({ type: 'end' });
    expect((await client.end()).code).toBe(1000);
  });
});
