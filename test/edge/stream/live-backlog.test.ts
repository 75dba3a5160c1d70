import { describe, expect, it, onTestFinished } from 'vitest';
import {
  audioBudget,
  STREAM_ISOLATE_BYTES,
  STREAM_PACED_BYTES,
  STREAM_RESERVED_BYTES,
} from '../../../edge/stream/audio-budget.ts';
import { STREAM_MESSAGE_BYTES } from '../../../edge/stream/client-socket.ts';
import { eventually } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { LiveClient, startListener } from '../live-client.ts';
import { limitRings } from '../small-ring.ts';
import { StreamClient } from '../stream-client.ts';

const bearer = async () => ({ authorization: `Bearer ${await makeToken({})}` });
const deepgram = async (model: string) =>
  LiveClient.connect(`/v1/listen?model=${model}&encoding=mulaw&sample_rate=8000`, await bearer());
const openai = async (model: string) => {
  const client = await LiveClient.connect(`/v1/realtime?model=${model}`, await bearer());
  const input = { format: { type: 'audio/pcmu' }, turn_detection: null };
  return client.send({ type: 'session.update', session: { audio: { input } } });
};
const append = (text: string) => ({ type: 'input_audio_buffer.append', audio: btoa(text) });
const encoder = new TextEncoder();

const KiB = 1024;
const quiet = '_'.repeat(64 * KiB);
/** An agent that hears everything and settles nothing, as in one long utterance. */
const unsettled = { checkpoints: false };

describe('C10 R1 more audio than the edge can buffer', () => {
  /** Small, so that tests fill it with little audio. Several messages more than the window to the agent. */
  const ring = 1_024 * KiB;
  const messages = 1_024 / 64;

  it('MUST 48: ends a Deepgram session with an Error and 1011', async () => {
    limitRings(ring);
    const { name, agentStreams } = await startListener(unsettled);
    const client = await deepgram(name);
    for (let sent = 0; sent <= messages; sent++) client.send(encoder.encode(quiet));
    client.send({ type: 'CloseStream' });
    expect(await client.end()).toEqual({ code: 1011, reason: 'NET-0000 backlog_full' });
    expect(client.messages.at(-1)).toMatchObject({ type: 'Error', code: 'backlog_full' });
    expect(client.all('Metadata')).toEqual([]);
    await eventually(() => agentStreams[0]?.closed);
  });

  it('MUST 48: ends an OpenAI session with an error and 4429, without items', async () => {
    limitRings(ring);
    const { name } = await startListener(unsettled);
    const client = await openai(name);
    for (let sent = 0; sent <= messages; sent++) client.send(append(quiet));
    client.send({ type: 'input_audio_buffer.commit' });
    expect(await client.end()).toEqual({ code: 4429, reason: 'backlog_full' });
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'backlog_full' } });
    expect(client.types.filter((type) => type.endsWith('.completed'))).toEqual([]);
  });

  it('MUST 11: an end before audio that was not taken came again is refused', async () => {
    limitRings(ring);
    const { name } = await startListener(unsettled);
    const client = await StreamClient.connect();
    client.start(name);
    for (let sent = 0; sent <= messages; sent++) client.speak(quiet);
    client.send({ type: 'end' });
    expect((await client.end()).code).toBe(4429);
    expect(client.all('overflow')).toMatchObject([{ position: ring, bytes: quiet.length }]);
    expect(client.all('refusal')).toMatchObject([{ reason: 'backlog_full' }]);
    expect(client.all('final')).toEqual([]);
  });

  /** Audio of another tenant that fills the isolate but for `free` bytes. */
  const fillIsolate = (free: number) => {
    const full = { memory: STREAM_ISOLATE_BYTES - free };
    onTestFinished(audioBudget.enter('another', full).end);
    return full;
  };

  it('ends a session beyond its reserved part when the isolate is full', async () => {
    const { name } = await startListener(unsettled);
    const client = await deepgram(name);
    const piece = encoder.encode('_'.repeat(16 * KiB));
    client.send(piece).send({ type: 'Finalize' });
    await client.waitFor('Results');
    fillIsolate(STREAM_RESERVED_BYTES);
    client.send(piece).send({ type: 'Finalize' });
    await eventually(() => client.all('Results').length > 1);
    for (let sent = 0; sent < 4; sent++) client.send(piece);
    client.send({ type: 'CloseStream' });
    expect(await client.end()).toMatchObject({ code: 1011, reason: 'NET-0000 backlog_full' });
    expect(client.messages.at(-1)).toMatchObject({ type: 'Error', code: 'backlog_full' });
  });

  it('ends a session before reading a message beyond the isolate’s memory', async () => {
    fillIsolate(STREAM_PACED_BYTES + 1_024 * KiB);
    const { name } = await startListener();
    const client = await openai(name);
    client.send(append('_'.repeat(2_048 * KiB)));
    expect(await client.end()).toMatchObject({ code: 4429 });
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'backlog_full' } });
  });

  it('lets no new session in when the isolate is full', async () => {
    fillIsolate(STREAM_PACED_BYTES);
    const { name } = await startListener();
    const client = await StreamClient.connect();
    client.start(name);
    expect((await client.end()).code).toBe(4503);
    expect(client.all('refusal')).toMatchObject([{ reason: 'edge_busy' }]);
  });

  it('in one message ends no session normally', async () => {
    const { name } = await startListener();
    const large = '_'.repeat(STREAM_MESSAGE_BYTES);
    const [listener, realtime] = [await deepgram(name), await openai(name)];
    listener.send(encoder.encode(`${large}_`));
    expect(await listener.end()).toEqual({ code: 1008, reason: 'DATA-0000 message_too_large' });
    expect(listener.messages).toMatchObject([{ type: 'Error', code: 'message_too_large' }]);
    realtime.send({ type: 'input_audio_buffer.append', audio: large });
    expect(await realtime.end()).toMatchObject({ code: 4413 });
    expect(realtime.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'message_too_large' } });
  });
});

describe('C10 R1 audio much faster than the agent reads', () => {
  /** Beyond the share of a session: 8 MiB, as one message and as many. */
  const flood = '_'.repeat(4 * 1_024 * KiB);

  it('is transcribed completely, also after a loss of its agent', async () => {
    let held = 0;
    const before = (_: unknown, said: object) => 'kind' in said && agentStreams.length === 1 && ++held > 2;
    const { name, agentStreams } = await startListener({ before });
    const client = await deepgram(name);
    client.send(encoder.encode(`first ${flood}`));
    for (let at = 0; at < flood.length; at += quiet.length) client.send(encoder.encode(quiet));
    client.send(encoder.encode('last')).send({ type: 'CloseStream' });
    await eventually(() => held > 0);
    agentStreams[0]?.cut();
    expect(await client.end()).toMatchObject({ code: 1000 });
    expect(agentStreams[1]?.position).toBe(2 * flood.length + 'first last'.length);
    const [result] = client.all('Results') as unknown as { channel: { alternatives: { transcript: string }[] } }[];
    expect(result?.channel.alternatives[0]?.transcript).toBe('first last');
  });
});
