import { request as httpRequest } from 'node:http';
import { generateKeyPair } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import WebSocket from 'ws';
import { sha256 } from '../../../../infra/pool/agent/identity/keys.ts';
import { LINK_MESSAGE_BYTES } from '../../../../infra/pool/agent/stream/web-socket.ts';
import { KiB } from '../../../../shared/bytes.ts';
import { CHECKPOINT_CHARACTERS } from '../../../../shared/stream/limits.ts';
import { encodeAudio, encodeControl } from '../../../../shared/stream/link-record.ts';
import { sealTo } from '../../../fake/edge.ts';
import { type FakeLink, openControl } from '../../../fake/stream-link.ts';
import { joinSamples, silence, voice } from '../fixtures.ts';
import { patience } from '../start-agent.ts';
import { linear16, type StreamBench, startStreamBench } from './start-stream.ts';

// Decoder packages print a line for each damaged frame; the process of the agent keeps them quiet, too.
vi.spyOn(console, 'error').mockImplementation(() => {});

let bench: StreamBench;
beforeAll(async () => {
  bench = await startStreamBench();
});
afterAll(() => bench.stop());

const sound = joinSamples(silence(0.5), voice(1), silence(1), voice(1.2), silence(1));

async function refusalOf(link: FakeLink) {
  const refusal = await link.event('refusal');
  expect(link.events.at(-1)).toBe(refusal);
  expect(await link.closed()).toBe(1000);
  return refusal;
}

describe('a live stream (R1)', () => {
  it('MUST 60: turns PCM into a segment for each utterance and ends with totals', async () => {
    const link = await bench.dial();
    await link.open();
    await link.audio(linear16(sound));
    await link.end();
    const final = await link.event('final');
    expect(final).toMatchObject({ model: 'test-en', language: 'en', segments: 2 });
    expect(final.durationSeconds).toBeCloseTo(4.7, 6);
    expect(link.events[0]).toMatchObject({ type: 'ready', agent: 'agent-1', model: 'test-en', language: 'en' });
    expect(link.all('segment').map(({ index, ending }) => [index, ending])).toEqual([
      [0, 'endpoint'],
      [1, 'endpoint'],
    ]);
    expect(await link.closed()).toBe(1000);
    expect(bench.sequences.open.size).toBe(0);
  });

  it('MUST 62: acknowledges audio after each 64 KiB and after the last byte', async () => {
    const link = await bench.dial();
    await link.open();
    await link.audio(linear16(sound), 4 * KiB);
    await link.until(() => link.all('heard').at(-1)?.position === link.position());
    const told = link.all('heard').map(({ position }) => position);
    for (const [place, position] of told.entries()) {
      expect(position - (told[place - 1] ?? 0)).toBeLessThanOrEqual(64 * KiB);
    }
    expect(link.all('heard').at(-1)?.time).toBeCloseTo(4.7, 6);
    await link.end();
    await link.event('final');
  });

  it('runs windows of 300 ms, 100 ms apart (A4), in the ticket’s class (A2)', async () => {
    const from = bench.sequences.requests.length;
    const link = await bench.dial({ claims: { class: 'interactive' } });
    await link.open();
    await link.audio(linear16(sound));
    await link.end();
    await link.event('final');
    const asked = bench.sequences.requests.slice(from);
    const first = asked.filter(({ id }) => id === asked[0]?.id);
    expect(new Set(first.slice(0, -1).map(({ samples }) => samples.length))).toEqual(new Set([4_800]));
    for (let i = 1; i < first.length - 1; i++) {
      expect(first[i]?.samples.subarray(0, 3_200)).toEqual(first[i - 1]?.samples.subarray(1_600));
    }
    expect(first.map(({ start }) => start)).toEqual(first.map((_, i) => i === 0));
    expect(first.map(({ end }) => end)).toEqual(first.map((_, i) => i === first.length - 1));
    expect(new Set(asked.map(({ model, priority }) => `${model} ${priority}`))).toEqual(new Set(['test-en-stream 2']));
  });

  it('MUST 65: finalize transcribes all audio before it, then answers', async () => {
    const link = await bench.dial();
    await link.open({ options: { interim: false, endpointingMs: false } });
    await link.audio(linear16(joinSamples(silence(0.3), voice(1))));
    await link.control({ type: 'finalize', id: 7, position: link.position() });
    await link.event('finalized');
    expect(link.all('segment')).toMatchObject([{ index: 0, ending: 'finalize' }]);
    await link.control({ type: 'finalize', id: 8, position: link.position() });
    await link.until(() => link.all('finalized').length === 2);
    expect(link.all('segment')).toHaveLength(1);
    await link.end();
    expect(await link.event('final')).toMatchObject({ segments: 1 });
  });

  it('forgets what is being said when the caller says so', async () => {
    const link = await bench.dial();
    await link.open({ options: { interim: false, endpointingMs: false } });
    await link.audio(linear16(joinSamples(silence(0.3), voice(1))));
    await link.control({ type: 'clear', id: 1, position: link.position() });
    await link.event('cleared');
    await link.audio(linear16(voice(0.6)));
    await link.end();
    const final = await link.event('final');
    expect(link.all('segment')).toMatchObject([{ index: 0, ending: 'end' }]);
    expect(link.all('segment')[0]?.start).toBeGreaterThanOrEqual(1.3);
    expect(final.durationSeconds).toBeCloseTo(1.9, 6);
    expect(bench.sequences.open.size).toBe(0);
  });

  it('reports start and stop of speech, and a time without words', async () => {
    const link = await bench.dial();
    await link.open({ options: { interim: false, endpointingMs: 300, utteranceEndMs: 1_000 } });
    await link.audio(linear16(joinSamples(silence(0.5), voice(1), silence(2))));
    await link.end();
    await link.event('final');
    const [started, ended] = [link.all('speech_started'), link.all('speech_ended')];
    expect(started).toHaveLength(1);
    expect(ended).toHaveLength(1);
    expect(Math.abs((started[0]?.at ?? 0) - 0.5)).toBeLessThanOrEqual(0.1);
    expect(Math.abs((ended[0]?.at ?? 0) - 1.5)).toBeLessThanOrEqual(0.3);
    expect(link.all('utterance_end')).toEqual([{ type: 'utterance_end', lastWordEnd: link.all('segment')[0]?.end }]);
  });

  it('MUST 64: counts 60 s of silence in samples, without a clock (A4)', async () => {
    const link = await bench.dial();
    await link.open();
    await link.audio(linear16(joinSamples(voice(1), silence(60), voice(1), silence(1))), 32_000);
    await link.end();
    await link.event('final');
    const [, second] = link.all('segment');
    expect(second?.start).toBeGreaterThanOrEqual(60.5);
    expect(second?.end).toBeLessThanOrEqual(62.7);
    // About one a second, so that the edge need hold no more.
    expect(link.all('checkpoint').length).toBeGreaterThanOrEqual(50);
    const times = link.all('checkpoint').map(({ time }) => time);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    for (const { state } of link.all('checkpoint')) {
      expect(state.length).toBeLessThanOrEqual(CHECKPOINT_CHARACTERS);
    }
  });

  it('ends its sequence when the edge is gone (A5)', async () => {
    const link = await bench.dial();
    await link.open();
    await link.audio(linear16(joinSamples(silence(0.3), voice(1))));
    await expect.poll(() => bench.sequences.open.size, patience).toBe(1);
    link.drop();
    await expect.poll(() => bench.sequences.open.size, patience).toBe(0);
  });

  it('goes on from a checkpoint at another agent', async () => {
    const other = await startStreamBench();
    try {
      const pcm = linear16(sound);
      const first = await bench.dial();
      await first.open();
      await first.audio(pcm);
      await first.end();
      await first.event('final');
      const before = first.all('checkpoint').find(({ index }) => index === 1);
      if (!before) throw new Error('no checkpoint between the utterances');
      const { type: _, ...from } = before;
      const second = await other.dial();
      await second.open({ from });
      await second.audio(pcm.subarray(from.position));
      await second.end();
      expect(await second.event('final')).toEqual(await first.event('final'));
      expect(second.all('segment')).toEqual(first.all('segment').slice(1));
    } finally {
      await other.stop();
    }
  });
});

describe('interims (A6)', () => {
  it('come once a window at most, when sure or grown, with stable words', async () => {
    const from = bench.sequences.requests.length;
    const link = await bench.dial();
    await link.open();
    await link.audio(linear16(joinSamples(silence(0.5), voice(2), silence(1))));
    await link.end();
    await link.event('final');
    const interims = link.all('interim');
    expect(interims.length).toBeGreaterThan(3);
    expect(interims.length).toBeLessThanOrEqual(bench.sequences.requests.length - from);
    const [segment] = link.all('segment');
    for (const [place, interim] of interims.entries()) {
      const before = interims[place - 1];
      const grew = interim.stable > (before?.stable ?? 0);
      expect(interim.confidence > 0.8 || grew).toBe(true);
      expect(grew || interim.text !== before?.text).toBe(true);
      expect(interim.index).toBe(0);
      expect(interim.text).toBe(interim.words.map(({ word }) => word).join(' '));
      expect(interim.words.slice(0, interim.stable).map(({ word }) => word)).toEqual(
        segment?.words.slice(0, interim.stable).map(({ word }) => word),
      );
    }
  });

  it('are not sent when disabled', async () => {
    const link = await bench.dial();
    await link.open({ options: { interim: false, endpointingMs: 600 } });
    await link.audio(linear16(sound));
    await link.end();
    await link.event('final');
    expect(link.all('interim')).toEqual([]);
  });
});

describe('admission: refused in plain HTTP, as for a short request', () => {
  const plain = (over: Parameters<StreamBench['dial']>[0]) =>
    bench.dial(over).then(
      () => 'let in',
      (error) => `${error.status} ${error.reason}`,
    );

  it('a ticket of another issuer, for another agent, or used before', async () => {
    const { privateKey } = await generateKeyPair('ES256');
    expect(await plain({ ticket: await bench.edge.ticket({ aud: 'agent-1' }, privateKey) })).toBe('403 ticket_invalid');
    expect(await plain({ claims: { aud: 'agent-2' } })).toBe('403 ticket_invalid');
    expect(await plain({ claims: { enc: sha256('another') } })).toBe('403 ticket_invalid');
    const setup = await sealTo(bench.agent.keys.current().token);
    const ticket = await bench.edge.ticket({
      aud: 'agent-1',
      tenant: 'dev',
      class: 'default',
      model: 'test-en',
      enc: sha256(setup.enc),
      att: sha256(bench.agent.keys.current().token),
      suite: 5,
      deadlineMs: 60_000,
    });
    const first = await bench.dial({ setup, ticket });
    expect(await plain({ setup, ticket })).toBe('403 ticket_replayed');
    first.drop();
  });

  it('a model that is not here', async () => {
    expect(await plain({ model: 'other' })).toBe('421 misdirected');
  });

  it('more streams than there is room for, and any while the agent stops', async () => {
    const small = await startStreamBench({ AURICLE_STREAMS: '1' });
    const first = await small.dial();
    await first.open();
    await first.event('ready');
    await expect(small.dial()).rejects.toMatchObject({ status: 503, reason: 'pool_busy' });
    const stopping = small.stop();
    await first.event('drain');
    await expect(small.dial()).rejects.toMatchObject({ status: 503, reason: 'pool_busy' });
    await first.end();
    await first.event('final');
    await stopping;
  });

  it('every stream while the engine is unreachable', async () => {
    const other = await startStreamBench();
    other.sequences.ready = false;
    await expect
      .poll(
        () =>
          other.dial().then(
            (link) => link.drop(),
            (error) => error.reason,
          ),
        patience,
      )
      .toBe('pool_busy');
    await other.stop();
  });

  it('a request without upgrade, or to another path', async () => {
    const answer = await fetch(`${bench.agent.url}/v1/stream`);
    expect([answer.status, await answer.json()]).toEqual([426, { reason: 'upgrade_missing' }]);
    const socket = new WebSocket(`${bench.agent.url.replace('http', 'ws')}/v1/short`);
    const status = await new Promise((resolve) => {
      socket.once('unexpected-response', (_outgoing, incoming) => resolve(incoming.statusCode));
      socket.once('error', () => {});
    });
    expect(status).toBe(404);
  });

  it('an upgrade that is none ends, and the agent goes on', async () => {
    const { hostname, port } = new URL(bench.agent.url);
    const outgoing = httpRequest({
      hostname,
      port,
      path: '/v1/stream',
      headers: { connection: 'upgrade', upgrade: 'something', 'auricle-ticket': 'x' },
    });
    outgoing.end();
    const status = await new Promise((resolve, reject) => {
      outgoing.once('response', (incoming) => resolve(incoming.statusCode));
      outgoing.once('error', reject);
    });
    expect(status).toBe(403);
    expect((await fetch(`${bench.agent.url}/healthz`)).status).toBe(200);
  });
});

describe('forbidden messages of the edge end the stream with a refusal', () => {
  const open = () => encodeControl(openControl());
  const cases: [name: string, send: (link: FakeLink) => Promise<unknown>, reason: string][] = [
    ['audio before open', (link) => link.audioAt(0, new Uint8Array(2)), 'seal_broken'],
    ['open twice', (link) => link.open().then(() => link.open()), 'seal_broken'],
    ['audio that leaves a hole', (link) => link.open().then(() => link.audioAt(2, new Uint8Array(2))), 'seal_broken'],
    [
      'a finalize of audio to come',
      (link) => link.open().then(() => link.control({ type: 'finalize', id: 1, position: 2 })),
      'seal_broken',
    ],
    ['an end without the final flag', (link) => link.open().then(() => link.control({ type: 'end' })), 'seal_broken'],
    [
      'a final flag without an end',
      (link) => link.open().then(() => link.send(encodeAudio(0, new Uint8Array(2)), true)),
      'seal_broken',
    ],
    ['a record of nothing known', (link) => link.open().then(() => link.send(Uint8Array.of(9, 9))), 'seal_broken'],
    ['another model than the ticket has', (link) => link.open({ model: 'other' }), 'ticket_invalid'],
    ['a language the model does not know', (link) => link.open({ language: 'fr' }), 'language_unknown'],
    [
      'bytes that are no Opus',
      (link) =>
        link
          .open({ format: { encoding: 'opus', rate: 48_000, channels: 1 } })
          .then(() => link.audio(Uint8Array.of(0xff, 0xff, 0xff, 0xff))),
      'audio_invalid',
    ],
  ];
  it.each(cases)('%s', async (_name, send, reason) => {
    const link = await bench.dial();
    await send(link);
    expect((await refusalOf(link)).reason).toBe(reason);
  });

  it('a text message, and bytes that were not sealed', async () => {
    for (const wrong of ['text', Buffer.alloc(40, 0xff)]) {
      const link = await bench.dial();
      await link.open();
      link.socket.send(wrong);
      expect((await refusalOf(link)).reason).toBe('seal_broken');
    }
  });

  it('a message over the bound of the socket, which the agent survives', async () => {
    const link = await bench.dial();
    await link.open();
    link.socket.send(Buffer.alloc(LINK_MESSAGE_BYTES + 1));
    expect(await link.closed()).toBe(1009);
    expect((await fetch(`${bench.agent.url}/healthz`)).status).toBe(200);
  });

  it('nothing of a stream is in the log, and its refusal is', async () => {
    const link = await bench.dial();
    await link.send(open(), true);
    await refusalOf(link);
    const line = bench.lines
      .map((text) => JSON.parse(text))
      .filter(({ event }) => event === 'stream-refused')
      .at(-1);
    expect(line).toMatchObject({ reason: 'seal_broken', detail: 'stream: end and final flag belong together' });
    expect(Object.keys(line).sort()).toEqual(['agent', 'at', 'detail', 'event', 'reason', 'request']);
  });
});

describe('bounds of a stream', () => {
  it('ends with its ticket, with a reason', async () => {
    const link = await bench.dial({ claims: { deadlineMs: 150 } });
    await link.open();
    expect((await refusalOf(link)).reason).toBe('deadline_passed');
  });

  it('MUST 61: sends keepalives in silence', async () => {
    const quiet = await startStreamBench({}, { keepaliveMs: 20 });
    const link = await quiet.dial();
    await link.open();
    await link.until(() => link.all('keepalive').length >= 3);
    await link.end();
    await link.event('final');
    await quiet.stop();
  });

  it('streams left at shutdown move to another pool, and their sequences end', async () => {
    const other = await startStreamBench({ AURICLE_DRAIN_MS: '50' });
    const link = await other.dial();
    await link.open();
    await link.audio(linear16(joinSamples(silence(0.3), voice(1))));
    await expect.poll(() => other.sequences.open.size, patience).toBe(1);
    const stopped = other.stop();
    await link.event('drain');
    expect((await refusalOf(link)).reason).toBe('pool_busy');
    await stopped;
    expect(other.sequences.open.size).toBe(0);
  });

  it('counts itself on the page of metrics (R14)', async () => {
    const page = await (await fetch(`${bench.agent.url}/metrics`)).text();
    for (const name of ['streams_open', 'stream_steps', 'stream_steps_queued', 'stream_rebuilding']) {
      expect(page).toMatch(new RegExp(`^auricle_agent_${name} \\d+$`, 'm'));
    }
    expect(page).toMatch(/^auricle_agent_streams_total\{outcome="ok"\} \d+$/m);
    expect(page).toMatch(/^auricle_agent_streams_total\{outcome="seal_broken"\} \d+$/m);
    expect(page).toMatch(/^auricle_agent_stream_windows_total [1-9]\d*$/m);
    expect(page).toMatch(/^auricle_agent_stream_lag_seconds_count [1-9]\d*$/m);
  });
});
