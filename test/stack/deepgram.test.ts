import net from 'node:net';
import { DeepgramClient, DeepgramError } from '@deepgram/sdk';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { STREAM_PACED_BYTES } from '../../edge/stream/audio-budget.ts';
import { wav } from '../wav.ts';
import { type Clip, clipBytes, clips } from './clips.ts';
import { join } from './join.ts';
import { type LiveSound, liveSound, muLaw, opusPackets, pieces, repeat, wide } from './live-sound.ts';
import type { Shared } from './running.ts';

let running: Shared;
beforeAll(async () => {
  running = await join();
}, 60_000);

const model = 'reference-en';
const spoken = clips.filter(({ file }) => file.endsWith('.wav'));
/** A close microphone, a telephone, and a studio at 48 kHz; the same recording in every container. */
const sounds = spoken.filter(({ file }) => /^(balance|telephone|studio)\./.test(file));
const containers = clips.filter(({ file }) => /^balance\./.test(file));
const clip = (file: string): Clip => clips.find((one) => one.file === file) as Clip;

/** The client of Deepgram, configured with another address only. */
function makeClient(options: Record<string, unknown> = {}, url = running.stack.url): DeepgramClient {
  const socket = url.replace(/^http/, 'ws');
  const environment = { base: url, production: socket, agent: socket, agentRest: url };
  return new DeepgramClient({ accessToken: running.stack.token, environment, ...options });
}

interface Message {
  readonly type: string;
  readonly [name: string]: unknown;
}

interface Result extends Message {
  readonly is_final: boolean;
  readonly speech_final: boolean;
  readonly from_finalize: boolean;
  readonly start: number;
  readonly duration: number;
  readonly channel: {
    readonly alternatives: readonly {
      readonly transcript: string;
      readonly confidence: number;
      readonly words: readonly { word: string; start: number; end: number; confidence: number }[];
    }[];
  };
}

/** One stream of the client, recorded. */
async function open(wish: Record<string, unknown>, client = makeClient()) {
  const socket = await client.listen.v1.connect({ model, ...wish } as never);
  const messages: Message[] = [];
  const errors: string[] = [];
  const waiting: (() => void)[] = [];
  const note = () => {
    for (const look of waiting.splice(0)) look();
  };
  let opens = 0;
  socket.on('open', () => {
    opens += 1;
    note();
  });
  socket.on('message', (message) => {
    messages.push(message as unknown as Message);
    note();
  });
  socket.on('error', (error) => errors.push(error.message));
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (event) => {
      const { code, reason } = event as { code: number; reason: string };
      resolve({ code, reason });
    });
  });
  socket.connect();
  const waitFor = async (which: (message: Message) => boolean): Promise<Message> => {
    for (;;) {
      const found = messages.find(which);
      if (found) return found;
      await new Promise<void>((resolve) => void waiting.push(resolve));
    }
  };
  /** Resolves when the client has connected so many times. */
  const opened = async (times: number): Promise<void> => {
    while (opens < times) await new Promise<void>((resolve) => void waiting.push(resolve));
  };
  const results = () => messages.filter(({ type }) => type === 'Results') as Result[];
  const finals = () => results().filter(({ is_final }) => is_final);
  const text = () =>
    finals()
      .map(({ channel }) => channel.alternatives[0]?.transcript)
      .filter(Boolean)
      .join(' ');
  return { socket, messages, errors, closed, waitFor, opened, results, finals, text };
}

const linear = ({ rate }: LiveSound) => ({ encoding: 'linear16', sample_rate: rate });

describe('C1 C10 R1 the unmodified Deepgram client streams', () => {
  it.each(sounds.map((one) => [one.file, one] as const))('%s: the words that were spoken', async (_, one) => {
    const sound = liveSound(one);
    const stream = await open({ ...linear(sound), interim_results: 'true', vad_events: 'true' });
    await stream.socket.waitForOpen();
    for (const piece of pieces(sound)) stream.socket.sendMedia(piece);
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    expect(await stream.closed).toMatchObject({ code: 1000 });
    expect(stream.text()).toBe(one.text);

    const words = stream.finals().flatMap(({ channel }) => channel.alternatives[0]?.words ?? []);
    expect(words.map(({ word }) => word).join(' ')).toBe(one.text);
    const times = words.flatMap(({ start, end }) => [start, end]);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    const metadata = stream.messages.at(-1);
    expect(metadata).toMatchObject({ type: 'Metadata', channels: 1 });
    expect(times.at(-1)).toBeLessThanOrEqual(Number(metadata?.duration));
    expect(metadata?.duration).toBeCloseTo(sound.samples.length / sound.rate, 2);
    expect(stream.messages.map(({ type }) => type)).toContain('SpeechStarted');
  });

  it('a recording sent at once is transcribed whole, and ends normally', async () => {
    const studio = clip('studio.wav');
    const times = 4;
    const sound = repeat(liveSound(studio), times);
    const bytes = wide(sound);
    expect(bytes.length).toBeGreaterThan(STREAM_PACED_BYTES);
    const stream = await open({ encoding: 'linear32', channels: 2, sample_rate: sound.rate });
    await stream.socket.waitForOpen();
    for (let at = 0; at < bytes.length; at += 32_000) stream.socket.sendMedia(bytes.slice(at, at + 32_000));
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    expect(await stream.closed).toMatchObject({ code: 1000 });
    expect(stream.text()).toBe(Array(times).fill(studio.text).join(' '));
    expect(stream.messages.at(-1)?.duration).toBeCloseTo(sound.samples.length / sound.rate, 2);
    expect(stream.errors).toEqual([]);
  });

  it('A6 confident partial results before the end of an utterance, with most words', async () => {
    const one = spoken[1] as Clip;
    const sound = liveSound(one);
    const stream = await open({ ...linear(sound), interim_results: 'true' });
    await stream.socket.waitForOpen();
    for (const piece of pieces(sound)) stream.socket.sendMedia(piece);
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    await stream.closed;
    const partial = stream.results().filter(({ is_final }) => !is_final);
    expect(partial.length).toBeGreaterThan(2);
    for (const { channel } of partial) expect(channel.alternatives[0]?.confidence).toBeGreaterThan(0.8);
    // The last interim has most of the final words.
    const last = partial.at(-1)?.channel.alternatives[0]?.transcript.split(' ') ?? [];
    expect(last.length).toBeGreaterThan(one.text.split(' ').length / 2);
  });

  it('Finalize returns the speech so far, and the stream continues', async () => {
    const one = spoken[0] as Clip;
    const sound = liveSound(one, 0);
    const stream = await open({ ...linear(sound), endpointing: 'false' });
    await stream.socket.waitForOpen();
    for (const round of [1, 2]) {
      for (const piece of pieces(sound)) stream.socket.sendMedia(piece);
      stream.socket.sendFinalize({ type: 'Finalize' });
      await stream.waitFor((message) => message.type === 'Results' && (message as Result).from_finalize === true);
      if (round === 1) stream.socket.sendKeepAlive({ type: 'KeepAlive' });
    }
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    await stream.closed;
    expect(stream.text()).toBe(`${one.text} ${one.text}`);
    expect(stream.finals().filter(({ from_finalize }) => from_finalize).length).toBeGreaterThanOrEqual(2);
  });

  it('sound of a telephone, µ-law at 8 kHz', async () => {
    const one = clip('telephone.wav');
    const { samples, rate } = liveSound(one);
    expect(rate).toBe(8_000);
    const stream = await open({ encoding: 'mulaw', sample_rate: 8_000 });
    await stream.socket.waitForOpen();
    const bytes = muLaw(samples);
    for (let at = 0; at < bytes.length; at += 800) stream.socket.sendMedia(bytes.subarray(at, at + 800));
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    await stream.closed;
    expect(stream.text()).toBe(one.text);
  });

  it.each(['balance.wav', 'balance.opus'])('%s as it is, without telling what it is', async (file) => {
    const one = clip(file);
    const stream = await open({});
    await stream.socket.waitForOpen();
    const bytes = clipBytes(one);
    for (let at = 0; at < bytes.length; at += 3_000) stream.socket.sendMedia(bytes.slice(at, at + 3_000));
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    expect(await stream.closed).toMatchObject({ code: 1000 });
    expect(stream.text()).toBe(one.text);
  });

  it('Opus packets of a phone, one by one', async () => {
    const one = clip('balance.opus');
    const stream = await open({ encoding: 'opus', sample_rate: 48_000 });
    await stream.socket.waitForOpen();
    for (const packet of opusPackets(clipBytes(one))) stream.socket.sendMedia(packet);
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    expect(await stream.closed).toMatchObject({ code: 1000 });
    expect(stream.text()).toBe(one.text);
  });
});

describe('§3-15 §3-20 refusals for the unmodified Deepgram client', () => {
  it('a bad token: the handshake is refused once', async () => {
    const client = makeClient({ accessToken: 'not.a.token' });
    const stream = await open({ encoding: 'linear16', sample_rate: 16_000 }, client);
    await stream.closed;
    expect(stream.errors.join()).toMatch(/401|error/i);
    const socket = new WebSocket(`${running.stack.url.replace('http', 'ws')}/v1/listen?model=${model}`, {
      headers: { authorization: 'Token not.a.token' },
    });
    const answer = await new Promise<{ status: number | undefined; error: unknown }>((resolve) => {
      socket.on('unexpected-response', (_, { statusCode, headers }) => {
        resolve({ status: statusCode, error: headers['dg-error'] });
      });
    });
    socket.on('error', () => {});
    socket.terminate();
    expect(answer).toEqual({ status: 401, error: 'The token is not valid here.' });
  });
});

/** The stack behind a network that a test can break: sockets vanish without a close frame. */
async function startProxy() {
  const port = Number(new URL(running.stack.url).port);
  const pipes = new Set<net.Socket>();
  const proxy = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      pipes.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port: own } = proxy.address() as net.AddressInfo;
  const breakAll = () => {
    for (const pipe of pipes) pipe.destroy();
    pipes.clear();
  };
  onTestFinished(() => {
    proxy.close();
    breakAll();
  });
  return { url: `http://127.0.0.1:${own}`, breakAll };
}

describe('C10 A21 two callers on one DeepgramClient object', () => {
  it('get only their own words, also after a lost socket', async () => {
    const { url, breakAll } = await startProxy();
    const client = makeClient({}, url);
    const [one, two] = [spoken[0] as Clip, spoken[1] as Clip];
    const say = (stream: Awaited<ReturnType<typeof open>>, sound: LiveSound) => {
      for (const piece of pieces(sound)) stream.socket.sendMedia(piece);
    };
    const first = await open(linear(liveSound(one)), client);
    await first.socket.waitForOpen();
    say(first, liveSound(one));
    await first.waitFor(({ type }) => type === 'Results');
    const before = first.messages.length;
    breakAll();
    // The client reconnects by itself a second later, with the session id that both callers send.
    await first.opened(2);
    first.socket.sendKeepAlive({ type: 'KeepAlive' });
    const second = await open(linear(liveSound(two)), client);
    await second.socket.waitForOpen();
    say(second, liveSound(two));
    second.socket.sendCloseStream({ type: 'CloseStream' });
    await second.waitFor(({ type }) => type === 'Metadata');
    say(first, liveSound(one));
    first.socket.sendCloseStream({ type: 'CloseStream' });
    await first.waitFor(({ type }) => type === 'Metadata');

    expect(second.text()).toBe(two.text);
    const again = first.messages.slice(before);
    const finals = (again as Result[]).filter(({ type, is_final }) => type === 'Results' && is_final);
    const texts = finals.map(({ channel }) => channel.alternatives[0]?.transcript).filter(Boolean);
    expect(texts.join(' ')).toBe(one.text);
    // A session of its own: times begin at zero.
    expect(again.at(-1)?.duration).toBeCloseTo(liveSound(one).samples.length / liveSound(one).rate, 2);
    const types = [...first.messages, ...second.messages].map(({ type }) => type);
    expect([...new Set(types)].sort()).toEqual(['Metadata', 'Results']);
  }, 30_000);
});

describe('C10 short-lived tokens of the unmodified Deepgram client', () => {
  it('open a stream and nothing else', async () => {
    const granted = await makeClient().auth.v1.tokens.grant({ ttl_seconds: 60 });
    expect(granted.expires_in).toBe(60);
    const client = makeClient({ accessToken: granted.access_token });
    const sound = liveSound(spoken[0] as Clip);
    const stream = await open(linear(sound), client);
    await stream.socket.waitForOpen();
    for (const piece of pieces(sound)) stream.socket.sendMedia(piece);
    stream.socket.sendCloseStream({ type: 'CloseStream' });
    await stream.closed;
    expect(stream.text()).toBe((spoken[0] as Clip).text);
    await expect(client.auth.v1.tokens.grant({})).rejects.toMatchObject({ statusCode: 403 });
    const note = client.listen.v1.media.transcribeFile(clipBytes(spoken[0] as Clip), { model });
    await expect(note).rejects.toMatchObject({ statusCode: 403 });
  });

  it('send a voice note by pre-recorded API within their own allowance', async () => {
    const wish = { ttl_seconds: 60, scope: 'transcribe', sub: 'phone', allowance: { requests_per_minute: 1 } };
    const granted = await makeClient().auth.v1.tokens.grant(wish);
    const { media } = makeClient({ accessToken: granted.access_token, maxRetries: 0 }).listen.v1;
    const [one] = spoken as [Clip];
    const answer = await media.transcribeFile(clipBytes(one), { model });
    expect('results' in answer && answer.results.channels[0]?.alternatives?.[0]?.transcript).toBe(one.text);
    await expect(media.transcribeFile(clipBytes(one), { model })).rejects.toMatchObject({ statusCode: 429 });
  });
});

describe('C1 C10 recordings of the unmodified Deepgram client', () => {
  it.each(containers.map((one) => [one.file, one] as const))('%s: the words that were spoken', async (_, one) => {
    const answer = await makeClient().listen.v1.media.transcribeFile(clipBytes(one), { model, utterances: true });
    if (!('results' in answer)) throw new Error('no results');
    const [alternative] = answer.results.channels[0]?.alternatives ?? [];
    expect(alternative?.transcript).toBe(one.text);
    expect(alternative?.words?.map(({ word }) => word).join(' ')).toBe(one.text);
    expect(answer.results.utterances?.map(({ transcript }) => transcript).join(' ')).toBe(one.text);
    expect(answer.metadata).toMatchObject({ channels: 1, request_id: expect.stringMatching(/^[\w-]{36}$/) });
  });

  it('as samples, without a file around them', async () => {
    const one = spoken[0] as Clip;
    const { samples, rate } = liveSound(one);
    const bytes = new Uint8Array(samples.buffer);
    const wish = { model, encoding: 'linear16' as const, queryParams: {} };
    const answer = await makeClient().listen.v1.media.transcribeFile(bytes, wish, {
      queryParams: { sample_rate: rate },
    });
    if (!('results' in answer)) throw new Error('no results');
    expect(answer.results.channels[0]?.alternatives?.[0]?.transcript).toBe(one.text);
  });

  it('U7 with two channels are transcribed apart', async () => {
    const both = [clip('balance.wav'), clip('weather.wav')];
    const [left, right] = both.map((one) => liveSound(one).samples) as [Int16Array, Int16Array];
    const samples = new Int16Array(2 * Math.max(left.length, right.length));
    for (const [channel, one] of [left, right].entries())
      for (const [i, x] of one.entries()) samples[2 * i + channel] = x;
    const wish = { model, encoding: 'linear16' as const, multichannel: true };
    const answer = await makeClient().listen.v1.media.transcribeFile(new Uint8Array(samples.buffer), wish, {
      queryParams: { sample_rate: 16_000, channels: 2 },
    });
    if (!('results' in answer)) throw new Error('no results');
    const texts = answer.results.channels.map(({ alternatives }) => alternatives?.[0]?.transcript);
    expect(texts).toEqual(both.map(({ text }) => text));
  });

  it('are not fetched from somewhere else', async () => {
    const asked = makeClient().listen.v1.media.transcribeUrl({ url: 'http://169.254.169.254/latest', model });
    await expect(asked).rejects.toThrow(DeepgramError);
    await expect(asked).rejects.toMatchObject({ statusCode: 400, body: { err_code: 'INVALID_QUERY_PARAMETER' } });
  });

  it('that are none are refused in the shape it reads', async () => {
    const asked = makeClient({ maxRetries: 0 }).listen.v1.media.transcribeFile(new Uint8Array(500), { model });
    await expect(asked).rejects.toMatchObject({ statusCode: 415, body: { err_code: 'UNSUPPORTED_MEDIA_TYPE' } });
  });
});

describe('R2 C10 U12 the unmodified client of Deepgram speaks', () => {
  const text = 'The meeting starts at ten in the morning.';
  const words = 'the meeting starts at ten in the morning';
  const options = { model: 'voice-en', encoding: 'linear16', sample_rate: 24_000 } as const;

  async function hear(bytes: Uint8Array): Promise<string | undefined> {
    const answer = await makeClient().listen.v1.media.transcribeFile(Buffer.from(bytes), { model });
    return 'results' in answer ? answer.results.channels[0]?.alternatives?.[0]?.transcript : undefined;
  }

  it('in one request', async () => {
    const { data, rawResponse } = await makeClient()
      .speak.v1.audio.generate({ text, ...options } as never)
      .withRawResponse();
    expect(rawResponse.headers.get('content-type')).toBe('audio/wav');
    expect(rawResponse.headers.get('dg-model-name')).toBe('voice-en');
    expect(await hear(new Uint8Array(await data.arrayBuffer()))).toBe(words);
  });

  it('on a WebSocket, flush by flush', async () => {
    const socket = await makeClient().speak.v1.connect({ ...options, sample_rate: 16_000 } as never);
    const sound: Blob[] = [];
    const types: string[] = [];
    const closed = new Promise<number>((resolve) => void socket.on('close', ({ code }) => resolve(code)));
    socket.on('message', (message: unknown) => {
      if (message instanceof Blob) sound.push(message);
      else types.push((message as Message).type);
    });
    socket.connect();
    await socket.waitForOpen();
    socket.sendText({ type: 'Speak', text: 'The meeting starts ' });
    socket.sendText({ type: 'Speak', text: 'at ten in the morning.' });
    socket.sendFlush({ type: 'Flush' });
    socket.sendClose({ type: 'Close' });
    expect(await closed).toBe(1_000);
    expect(types).toEqual(['Metadata', 'Flushed']);
    expect(await hear(wav(new Int16Array(await new Blob(sound).arrayBuffer())))).toBe(words);
  });
});
