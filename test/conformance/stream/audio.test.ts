import { describe, expect, it } from 'vitest';
import { STREAM_CLIENT_BYTES } from '../../../edge/protocol/auricle-stream.ts';
import { STREAM_PACED_BYTES } from '../../../edge/stream/audio-budget.ts';
import { STREAM_RELIEF_BYTES, STREAM_WINDOW_BYTES } from '../../../edge/stream/replay-buffer.ts';
import { limitRings } from '../../edge/small-ring.ts';
import { StreamClient } from '../../edge/stream-client.ts';
import { startListener } from '../../edge/stream-listener.ts';
import { type AgentStream, eventually } from '../../fake/stream-agent.ts';

async function startClient(habits = {}) {
  const { name, agentStreams } = await startListener(undefined, habits);
  const client = await StreamClient.connect();
  client.start(name);
  await client.waitFor('ack');
  return { client, agentStreams };
}

const MiB = 1024 * 1024;
const quiet = '_'.repeat(MiB / 2);

describe('audio', () => {
  it('MUST 8: a hole is refused', async () => {
    const { client } = await startClient();
    client.speak('hello').speak('there', 6);
    expect((await client.end()).code).toBe(4400);
    expect(client.all('refusal')[0]).toMatchObject({ reason: 'frame_invalid' });
    expect(String(client.all('refusal')[0]?.message)).toContain('position 6');
  });

  it('MUST 9: known audio is ignored, and only the new part counts', async () => {
    const { client } = await startClient();
    client.speak('hello ').speak('hello ', 0).speak('llo the', 2).speak('', 4).speak('re.', 9).send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('hello there');
  });

  it('MUST 9: a packet is never cut', async () => {
    const { name } = await startListener();
    const client = await StreamClient.connect();
    client.start(name, { format: { encoding: 'opus', rate: 48_000, channels: 1 } });
    client.speak('abc').speak('cdef', 2);
    expect((await client.end()).code).toBe(4400);
    expect(client.all('refusal')[0]).toMatchObject({ reason: 'frame_invalid' });
  });

  it('MUST 10: everything inside the window is taken, unsettled', async () => {
    const { client, agentStreams } = await startClient();
    const [{ windowBytes } = { windowBytes: 0 }] = client.all('started') as unknown as { windowBytes: number }[];
    for (let sent = 0; sent + quiet.length <= windowBytes; sent += quiet.length) client.speak(quiet);
    client.speak('over').send({ type: 'end' });
    await client.end();
    expect(client.all('overflow')).toEqual([]);
    expect(agentStreams[0]?.position).toBe(windowBytes + 4);
    expect(client.transcript).toBe('over');
  });

  it('MUST 11: untaken audio is reported, and taken when sent again', async () => {
    // A small ring: production's holds more of this audio than a session may last, and its time limit ends
    // the input.
    const ring = 4 * STREAM_WINDOW_BYTES;
    limitRings(ring);
    let hold = true;
    const { client, agentStreams } = await startClient({
      before: (_: unknown, said: object) => hold && 'kind' in said,
    });
    for (let sent = 0; sent < ring; sent += quiet.length) client.speak(quiet);
    client.speak('not taken').speak('neither');
    const overflow = await client.waitFor('overflow');
    expect(overflow).toEqual({ type: 'overflow', position: ring, bytes: 9, seconds: 9 / 8_000 });
    // The agent continues with the whole window. Its settlement frees capacity.
    const [agentStream] = agentStreams;
    const heard = () =>
      agentStream?.messages.flatMap((said) => ('kind' in said ? [said.position + said.text.length] : [])) ?? [];
    await eventually(() => heard().at(-1) === STREAM_WINDOW_BYTES);
    hold = false;
    agentStream?.settle(STREAM_WINDOW_BYTES);
    await client.waitFor('ack', ({ position }) => Number(position) > 0);
    client.speak('taken now.', ring).send({ type: 'end' });
    await client.end();
    expect(client.transcript).toBe('taken now');
  });
});

describe('formats wider than the window of a client', () => {
  it('MUST 10: a finalize of the edge ends an utterance that fills the buffer', async () => {
    const { client, agentStreams } = await startClient();
    const letters = `x${'_'.repeat(499_999)}`;
    const total = 2 * STREAM_PACED_BYTES;
    let sent = 0;
    while (sent < total) {
      client.speak(letters);
      sent += letters.length;
      const unsettled = () => sent - Number(client.all('ack').at(-1)?.position);
      await eventually(() => agentStreams[0]?.position === sent && unsettled() < STREAM_CLIENT_BYTES);
    }
    client.send({ type: 'end' });
    expect((await client.end()).code).toBe(1000);
    expect(client.all('overflow')).toEqual([]);
    expect(client.all('finalized')).toEqual([]);
    const segments = client.all('segment') as unknown as { text: string; ending: string }[];
    expect(segments.length).toBeGreaterThan(2);
    expect(segments.reduce((sum, { text }) => sum + text.length, 0)).toBe(sent / letters.length);
    expect(new Set(segments.slice(0, -1).map(({ ending }) => ending))).toEqual(new Set(['finalize']));
  });

  it('MUST 53: a finalize of the edge waits for an announced checkpoint', async () => {
    const announces = (agentStream: AgentStream, said: AgentStream['messages'][number]) => {
      if (!('kind' in said)) return false;
      agentStream.send({ type: 'heard', position: said.position + said.text.length, time: 1, cut: 100 });
      return true;
    };
    const { client, agentStreams } = await startClient({ before: announces });
    for (let sent = 0; sent <= STREAM_RELIEF_BYTES; sent += quiet.length) client.speak(quiet);
    const [agentStream] = agentStreams;
    if (!agentStream) throw new Error('no agent hears');
    const said = () => agentStream.messages.map((one) => ('kind' in one ? one.position + one.text.length : one.type));
    await eventually(() => said().includes(client.position));
    // The edge has the answer to all audio when an event behind it comes; more audio comes behind a finalize.
    agentStream.send({ type: 'speech_started', at: 1 });
    await client.waitFor('speech_started');
    client.speak('x');
    await eventually(() => said().includes(client.position));
    expect(said()).not.toContain('finalize');
    agentStream.send({ type: 'checkpoint', position: 100, time: 1, index: 0, state: '' });
    await eventually(() => said().includes('finalize'));
  });
});
