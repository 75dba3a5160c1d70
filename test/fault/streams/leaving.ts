// Tokens that expire during a stream, and clients that vanish.
import net from 'node:net';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { CLOSING_SOCKETS_MAX } from '../../../edge/stream/sockets.ts';
import { CLOCK_SKEW_S } from '../../../shared/clock-offset.ts';
import { running } from '../here.ts';
import { finish, type Line, listen, saysAfter } from './listener.ts';
import { noStreams, patience, poolOfStream } from './place.ts';
import { part, story } from './sound.ts';

/** Longer limits: tests kill parts, and the next one waits for their restart. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
const MIDDLE = story.second + 1.5;

let undisturbed: Line[];
beforeAll(async () => {
  const listener = await listen(running);
  listener.send(story.bytes);
  undisturbed = await finish(listener);
});

/** Returns the refusal of a stream with this token; `undefined` when it is served. */
async function refusalOf(token: string): Promise<string | undefined> {
  try {
    const listener = await listen(running, { token });
    await finish(listener);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

describe('a token that expires under a stream (speech.md §3-23)', () => {
  /** A token past its expiry, with five seconds of the tolerated clock difference left. */
  const shortLived = () => running.mint({}, 5 - CLOCK_SKEW_S);
  const expired = (token: string) => expect.poll(() => refusalOf(token), patience).toContain('401');

  it('before the first audio: it is transcribed to its end', async () => {
    const token = await shortLived();
    const listener = await listen(running, { token });
    listener.say('KeepAlive');
    await expired(token);
    listener.send(story.bytes);
    expect(await finish(listener)).toEqual(undisturbed);
  });

  it('in the middle of an utterance: it is transcribed to its end', async () => {
    const token = await shortLived();
    const listener = await listen(running, { token });
    listener.send(part(0, MIDDLE));
    await listener.until(saysAfter(story.second));
    await expired(token);
    listener.send(part(MIDDLE));
    expect(await finish(listener)).toEqual(undisturbed);
  });

  it('during the final utterance: it is transcribed to its end', async () => {
    const token = await shortLived();
    const listener = await listen(running, { token });
    listener.send(part(0, MIDDLE));
    await listener.until(saysAfter(story.second));
    const engine = `engine-${await poolOfStream(running.stack)}`;
    running.stack.kill(engine, 'SIGSTOP');
    listener.send(part(MIDDLE));
    const lines = finish(listener);
    await expired(token);
    running.stack.kill(engine, 'SIGCONT');
    expect(await lines).toEqual(undisturbed);
  });

  it('a client that redials needs a valid token and gets everything', async () => {
    const token = await shortLived();
    const before = await listen(running, { token });
    before.send(part(0, MIDDLE));
    await before.until(saysAfter(story.second));
    await expired(token);
    before.drop();
    expect(await refusalOf(token)).toContain('401');
    const after = await listen(running, { token: await running.mint() });
    after.send(story.bytes);
    expect(await finish(after)).toEqual(undisturbed);
    expect(before.lines()).toEqual(undisturbed.slice(0, 1));
  });
});

describe('clients that are gone give their place back (speech.md §3-19)', () => {
  const single = (subject: string) => running.mint({ tenant: subject, allowance: { requestsAtOnce: 1 } });
  const served = async (token: string) => {
    const listener = await listen(running, { token });
    listener.send(new Uint8Array(3_200));
    return listener;
  };
  const isFull = async (token: string) => {
    const refusal = await refusalOf(token);
    expect(refusal).toContain('allowance_concurrent');
  };

  it('a client that closes without the end of its stream', async () => {
    const token = await single('hangs-up');
    const first = await served(token);
    await poolOfStream(running.stack);
    await isFull(token);
    first.hangUp();
    await expect.poll(() => refusalOf(token), patience).toBeUndefined();
    await noStreams(running.stack);
  });

  const dialects: Readonly<Record<string, (token: string) => Promise<() => void>>> = {
    OpenAI: async (token) => {
      const socket = await realtime(token);
      return () => socket.terminate();
    },
    Deepgram: async (token) => (await served(token)).drop,
  };

  it.each(Object.entries(dialects))('C10 an %s client whose connection breaks', async (name, connect) => {
    const token = await single(`breaks-${name.toLowerCase()}`);
    const drop = await connect(token);
    await poolOfStream(running.stack);
    await isFull(token);
    drop();
    await expect.poll(() => refusalOf(token), patience).toBeUndefined();
    await noStreams(running.stack);
  });
});

describe('C10 A21 sockets whose client ignores the close frame', () => {
  /** An upgrade over TCP by a client that never sends a frame. Resolves with its status. */
  function dial(token: string) {
    const { hostname, port } = new URL(running.stack.url);
    const socket = net.connect(Number(port), hostname);
    const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    const status = new Promise<string | undefined>((resolve) => {
      socket.on('data', (head) => resolve(/^HTTP\/1\.1 (\d+)/.exec(head.toString('latin1'))?.[1]));
      ended.then(() => resolve(undefined));
    });
    socket.on('error', () => {});
    const key = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13';
    const head = `GET /v1/stream HTTP/1.1\r\nhost: ${hostname}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n${key}`;
    socket.write(`${head}\r\nauthorization: Bearer ${token}\r\n\r\n`);
    return { socket, status, ended };
  }

  it('are few, and are ended by the edge', async () => {
    const requestsAtOnce = 2;
    const token = await running.mint({ tenant: 'half-closed', allowance: { requestsAtOnce } });
    const silent = await Promise.all(
      Array.from({ length: 100 }, () => dial(token)).map(async (one) => ({ ...one, status: await one.status })),
    );
    const accepted = silent.filter(({ status }) => status === '101');
    expect(accepted.length).toBeLessThanOrEqual(2 * requestsAtOnce + CLOSING_SOCKETS_MAX);
    expect(silent.filter(({ status }) => status === '429')).not.toEqual([]);
    const stranger = dial('no.token.here');
    expect(await stranger.status).toBe('101');
    // Two of them were not refused and may still start a session.
    let left = accepted.length - requestsAtOnce;
    await new Promise<void>((resolve) => {
      for (const { ended } of accepted) void ended.then(() => --left === 0 && resolve());
    });
    await stranger.ended;
    for (const { socket } of silent) socket.destroy();
  });
});

/** Starts a session of OpenAI's realtime transcription. */
async function realtime(token: string): Promise<WebSocket> {
  const url = `${running.stack.url.replace('http', 'ws')}/v1/realtime?intent=transcription`;
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` }, perMessageDeflate: false });
  const transcription = { model: 'reference-en' };
  const session = {
    type: 'transcription',
    audio: { input: { format: { type: 'audio/pcm', rate: 24_000 }, transcription } },
  };
  await new Promise<void>((resolve, reject) => {
    socket.on('message', (data) => {
      const { type, error } = JSON.parse(String(data));
      if (type === 'session.created') socket.send(JSON.stringify({ type: 'session.update', session }));
      if (type === 'session.updated') resolve();
      if (type === 'error') reject(new Error(error.code));
    });
    socket.on('error', reject);
  });
  socket.send(JSON.stringify({ type: 'input_audio_buffer.append', audio: Buffer.alloc(4_800).toString('base64') }));
  return socket;
}
