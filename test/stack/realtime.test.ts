import net from 'node:net';
import OpenAI, { toFile } from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { beforeAll, describe, expect, it } from 'vitest';
import { STREAM_PACED_BYTES } from '../../edge/stream/audio-budget.ts';
import { readRecord } from './audit-record.ts';
import { type Clip, clipBytes, clips } from './clips.ts';
import { join } from './join.ts';
import { type LiveSound, liveSound, pieces, repeat } from './live-sound.ts';
import type { Shared } from './running.ts';

let running: Shared;
beforeAll(async () => {
  running = await join();
}, 60_000);

const model = 'reference-en';
const spoken = clips.filter(({ file }) => file.endsWith('.wav'));
/** A close microphone, a telephone, and a studio at 48 kHz. */
const sounds = spoken.filter(({ file }) => /^(balance|telephone|studio)\./.test(file));
const first = spoken[0] as Clip;
const second = spoken[2] as Clip;
const PREFIX = 'conversation.item.input_audio_transcription';

interface Message {
  readonly type: string;
  readonly [name: string]: unknown;
}

/** The client always uses TLS; the stack has none, so the test makes the connection. */
const plainly = (url: string) => ({
  createConnection: () => net.connect(Number(new URL(url).port), '127.0.0.1'),
});

const makeClient = (apiKey = running.stack.token) =>
  new OpenAI({ apiKey, baseURL: `${running.stack.url}/v1`, maxRetries: 0 });

/** One session of the client, recorded. */
function open(target: { model: string } | { intent: 'transcription' } = { intent: 'transcription' }, apiKey?: string) {
  const options = plainly(running.stack.url) as never;
  const socket = new OpenAIRealtimeWS({ ...target, options }, makeClient(apiKey));
  return listen(socket);
}

function listen(socket: OpenAIRealtimeWS) {
  const messages: Message[] = [];
  const errors: { code?: string | null | undefined; message: string }[] = [];
  const waiting: (() => void)[] = [];
  const note = () => {
    for (const look of waiting.splice(0)) look();
  };
  const emitter = socket as OpenAIRealtimeWS;
  emitter.on('event', (event) => {
    messages.push(event as unknown as Message);
    note();
  });
  emitter.on('error', (error) => {
    errors.push({ code: error.error?.code, message: error.message });
    note();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  const waitFor = async (which: (event: Message) => boolean): Promise<Message> => {
    for (;;) {
      const found = messages.find(which);
      if (found) return found;
      await new Promise<void>((resolve) => void waiting.push(resolve));
    }
  };
  const completed = () => messages.filter(({ type }) => type === `${PREFIX}.completed`);
  return {
    socket,
    messages,
    errors,
    closed,
    waitFor,
    completed,
    send: (event: object) => emitter.send(event as never),
    types: () => messages.map(({ type }) => type),
    /** Resolves when `count` items are complete. */
    async items(count: number): Promise<Message[]> {
      await waitFor(() => completed().length >= count);
      return completed();
    },
    deltas: (item: unknown) =>
      messages.filter((event) => event.type === `${PREFIX}.delta` && event.item_id === item).map(({ delta }) => delta),
  };
}

const append = (bytes: Uint8Array) => ({
  type: 'input_audio_buffer.append',
  audio: Buffer.from(bytes).toString('base64'),
});
const update = (input: object) => ({ type: 'session.update', session: { type: 'transcription', audio: { input } } });
const pcm = ({ rate }: LiveSound) => ({ format: { type: 'audio/pcm', rate }, transcription: { model } });

/** Resamples two samples to three, for the rate of the hosted service. */
function atRealtimeRate({ samples }: LiveSound): LiveSound {
  const more = Int16Array.from({ length: Math.floor((samples.length * 3) / 2) }, (_, i) => {
    const at = (i * 2) / 3;
    const [one, other] = [samples[Math.floor(at)] ?? 0, samples[Math.ceil(at)] ?? 0];
    return one + (other - one) * (at % 1);
  });
  return { rate: 24_000, samples: more };
}

describe('C1 C10 R1 the unmodified openai client in a realtime session', () => {
  it.each(sounds.map((one) => [one.file, one] as const))('%s: the words that were spoken', async (_, one) => {
    const sound = liveSound(one);
    const session = open();
    await session.waitFor(({ type }) => type === 'session.created');
    session.send(update(pcm(sound)));
    for (const piece of pieces(sound)) session.send(append(piece));
    const [item] = await session.items(1);
    expect(item?.transcript).toBe(one.text);
    expect(session.deltas(item?.item_id).join('')).toBe(one.text);
    expect(session.deltas(item?.item_id).length).toBeGreaterThan(1);
    expect(item?.usage).toMatchObject({ type: 'duration', seconds: expect.any(Number) });
    expect(session.types().filter((type) => type !== `${PREFIX}.delta`)).toEqual([
      'session.created',
      'session.updated',
      'input_audio_buffer.speech_started',
      'input_audio_buffer.speech_stopped',
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
      `${PREFIX}.completed`,
    ]);
    expect(session.errors).toEqual([]);
    session.socket.close();
    await session.closed;
  });

  it('C4 R14 a session closed after its last word is recorded as served', async () => {
    const { stack, mint } = running;
    const tenant = `t-${crypto.randomUUID().slice(0, 8)}`;
    const sound = liveSound(first);
    const session = open({ model }, await mint({ tenant }));
    await session.waitFor(({ type }) => type === 'session.created');
    session.send(update(pcm(sound)));
    for (const piece of pieces(sound)) session.send(append(piece));
    await session.items(1);
    session.socket.close();
    const read = async () => {
      const record = await readRecord(stack.url, stack.token, tenant, 'eu');
      return [...record.matchAll(/\{[^{}]*"inference\.complete"[^{}]*\}/g)].map(([event]) => JSON.parse(event));
    };
    await expect.poll(read, { timeout: 15_000, interval: 100 }).toMatchObject([{ tenant, status: 200 }]);
  });

  it('at 24 kHz, the rate of the hosted service, with ?model= only', async () => {
    const session = open({ model });
    const sound = atRealtimeRate(liveSound(first));
    for (const piece of pieces(sound)) {
      if (session.messages.length === 0) await session.waitFor(({ type }) => type === 'session.created');
      session.send(append(piece));
    }
    const [item] = await session.items(1);
    expect(item?.transcript).toBe(first.text);
    session.socket.close();
  });

  it('a recording sent at once, in one message, is transcribed whole', async () => {
    const studio = clips.find(({ file }) => file === 'studio.wav') as Clip;
    const times = 4;
    const sound = repeat(liveSound(studio, 9), times);
    const bytes = new Uint8Array(sound.samples.buffer);
    expect(bytes.length).toBeGreaterThan(STREAM_PACED_BYTES);
    const session = open();
    await session.waitFor(({ type }) => type === 'session.created');
    session.send(update({ ...pcm(sound), turn_detection: null }));
    session.send(append(bytes));
    session.send({ type: 'input_audio_buffer.commit' });
    const [item] = await session.items(1);
    expect(item?.transcript).toBe(Array(times).fill(studio.text).join(' '));
    expect(session.errors).toEqual([]);
    session.socket.close();
  });

  it('two utterances: two items, the second behind the first', async () => {
    const session = open({ model });
    await session.waitFor(({ type }) => type === 'session.created');
    for (const one of [first, second]) {
      const sound = liveSound(one);
      if (one === first) session.send(update(pcm(sound)));
      for (const piece of pieces(sound)) session.send(append(piece));
    }
    const items = await session.items(2);
    expect(items.map(({ transcript }) => transcript)).toEqual([first.text, second.text]);
    const committed = session.messages.filter(({ type }) => type === 'input_audio_buffer.committed');
    expect(committed.map(({ previous_item_id }) => previous_item_id)).toEqual([null, items[0]?.item_id]);
    const starts = session.messages
      .filter(({ type }) => type === 'input_audio_buffer.speech_started')
      .map(({ audio_start_ms }) => Number(audio_start_ms));
    expect(starts[1]).toBeGreaterThan(Number(starts[0]) + 1_000);
    session.socket.close();
  });

  it('commits of its own, without turn detection', async () => {
    const session = open({ model });
    await session.waitFor(({ type }) => type === 'session.created');
    const sound = liveSound(first, 0);
    session.send(update({ ...pcm(sound), turn_detection: null }));
    for (const piece of pieces(sound)) session.send(append(piece));
    session.send({ type: 'input_audio_buffer.commit' });
    const committed = await session.waitFor(({ type }) => type === 'input_audio_buffer.committed');
    const [item] = await session.items(1);
    expect(item).toMatchObject({ item_id: committed.item_id, transcript: first.text });
    expect(session.deltas(item?.item_id).join('')).toBe(first.text);
    expect(session.types()).not.toContain('input_audio_buffer.speech_started');

    session.send({ type: 'input_audio_buffer.commit' });
    await session.waitFor(({ type }) => type === 'error');
    expect(session.errors[0]).toMatchObject({ code: 'input_audio_buffer_commit_empty' });

    for (const piece of pieces(sound)) session.send(append(piece));
    session.send({ type: 'input_audio_buffer.clear' });
    await session.waitFor(({ type }) => type === 'input_audio_buffer.cleared');
    const other = liveSound(second, 0);
    for (const piece of pieces(other)) session.send(append(piece));
    session.send({ type: 'input_audio_buffer.commit' });
    const items = await session.items(2);
    expect(items[1]?.transcript).toBe(second.text);
    session.socket.close();
  });
});

describe('C10 browsers, which have sub-protocols and no headers', () => {
  const connect = async (path: string, protocols: string[]) => {
    const socket = new WebSocket(`${running.stack.url.replace('http', 'ws')}${path}`, protocols);
    const opened = await new Promise<boolean>((resolve) => {
      socket.addEventListener('open', () => resolve(true));
      socket.addEventListener('error', () => resolve(false));
    });
    return { socket, opened };
  };

  it("open OpenAI's sessions", async () => {
    const protocols = ['realtime', `openai-insecure-api-key.${running.stack.token}`, 'openai-project.one'];
    const { socket, opened } = await connect('/v1/realtime?intent=transcription', protocols);
    expect([opened, socket.protocol]).toEqual([true, 'realtime']);
    socket.close();
  });

  it('have no other way in', async () => {
    const { opened } = await connect(`/v1/listen?model=${model}&encoding=mulaw&token=${running.stack.token}`, []);
    expect(opened).toBe(false);
  });
});

describe('C10 short-lived secrets of the unmodified openai client', () => {
  it('open the session they were made for', async () => {
    const sound = liveSound(first);
    const secret = await makeClient().realtime.clientSecrets.create({
      expires_after: { anchor: 'created_at', seconds: 60 },
      session: { type: 'transcription', audio: { input: pcm(sound) as never } },
    });
    expect(secret.value).toMatch(/^ek_/);
    const session = open({ intent: 'transcription' }, secret.value);
    const created = await session.waitFor(({ type }) => type === 'session.created');
    expect(created.session).toMatchObject({ audio: { input: pcm(sound) } });
    for (const piece of pieces(sound)) session.send(append(piece));
    const [item] = await session.items(1);
    expect(item?.transcript).toBe(first.text);
    session.socket.close();
    await expect(makeClient(secret.value).models.list()).rejects.toMatchObject({ status: 403 });
    await expect(makeClient(secret.value).realtime.clientSecrets.create({})).rejects.toMatchObject({ status: 403 });
  });

  it('send a voice note where they were made for recordings', async () => {
    const wish = { expires_after: { anchor: 'created_at', seconds: 60 } as const, scope: 'transcribe' };
    const secret = await makeClient().realtime.clientSecrets.create(wish);
    const file = await toFile(clipBytes(first), first.file);
    const { text } = await makeClient(secret.value).audio.transcriptions.create({ model, file });
    expect(text).toBe(first.text);
  });
});

describe('A21 the stack of realtime sessions', () => {
  it('logs hold neither words nor tokens', () => {
    const logs = running.logs();
    expect(logs).not.toContain(running.stack.token.slice(-40));
    for (const { text } of clips) expect(logs).not.toContain(text.split(' ').slice(0, 3).join(' '));
  });
});
