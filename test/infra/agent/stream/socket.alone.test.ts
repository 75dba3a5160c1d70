import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import {
  createSocketServer,
  LINK_MESSAGE_BYTES,
  STREAM_CLOSE_MS,
  type StreamSocket,
} from '../../../../infra/pool/agent/stream/web-socket.ts';

const LONGEST = LINK_MESSAGE_BYTES;

/** A listener that records what it is called with, one line each. */
function record() {
  const said: string[] = [];
  return {
    said,
    listener: {
      message: (data: Buffer, isBinary: boolean) =>
        void said.push(`${isBinary ? 'binary' : 'text'} ${data.toString('base64')}`),
      pong: () => void said.push('pong'),
    },
  };
}

describe('a WebSocket of the agent', () => {
  const server = createServer();
  const accepted: ((socket: StreamSocket) => void)[] = [];
  const sockets = createSocketServer((connection) => connection.end('HTTP/1.1 400 Refused\r\n\r\n'));
  server.on('upgrade', (incoming, connection, head) => {
    const socket = sockets.accept(incoming, connection, head);
    if (socket) accepted.shift()?.(socket);
  });
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => void server.close());
  const address = () => `127.0.0.1:${(server.address() as AddressInfo).port}`;

  /** Connects a client; returns it with the agent's socket and what that has received. */
  async function meet() {
    const { said, listener } = record();
    const closed = Promise.withResolvers<void>();
    const ours = new Promise<StreamSocket>((resolve) => {
      accepted.push((socket) => {
        socket.listen({ ...listener, closed: closed.resolve });
        resolve(socket);
      });
    });
    const client = new WebSocket(`ws://${address()}`);
    await once(client, 'open');
    return { client, said, gone: closed.promise, socket: await ours };
  }
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

  it('receives and sends messages of any length, whole and in fragments', async () => {
    const { client, said, socket } = await meet();
    const sizes = [0, 1, 3, 125, 126, 127, 3_238, 65_535, 65_536, 99_999, LONGEST];
    const messages = sizes.map((size) => Buffer.alloc(size, size & 0xff));
    const echoed: string[] = [];
    client.on('message', (data: Buffer, isBinary) => echoed.push(`${isBinary ? 'binary' : 'text'} ${base64(data)}`));
    for (const message of messages) {
      client.send(message);
      client.send(message.subarray(0, 7), { fin: false, binary: true });
      client.ping('still there?');
      client.send(message.subarray(7), { fin: true });
    }
    const wanted = messages.flatMap((message) => {
      const line = `binary ${base64(message)}`;
      return [line, line];
    });
    await expect.poll(() => said).toEqual(wanted);
    for (const message of messages) socket.send(message, () => {});
    await expect.poll(() => echoed).toEqual(messages.map((message) => `binary ${base64(message)}`));
    client.terminate();
  });

  it('answers pings and sends them', async () => {
    const { client, said, socket } = await meet();
    client.ping('who?');
    expect(String((await once(client, 'pong'))[0])).toBe('who?');
    const asked = once(client, 'ping');
    socket.ping();
    await asked;
    await expect.poll(() => said).toContain('pong');
    client.terminate();
  });

  it('does not read while it is paused', async () => {
    const { client, said, socket } = await meet();
    socket.pause();
    client.send('one');
    client.ping();
    socket.resume();
    await once(client, 'pong');
    expect(said).toEqual([`text ${base64(Buffer.from('one'))}`]);
    client.terminate();
  });

  it.each([
    ['1000', (client: WebSocket) => client.close(1000), 1000],
    ['a code of its own', (client: WebSocket) => client.close(3_456, 'bye'), 3_456],
    ['none', (client: WebSocket) => client.close(), 1005],
  ])('answers a close frame with %s and ends the connection', async (_name, close, code) => {
    const { client, gone, socket } = await meet();
    close(client);
    expect((await once(client, 'close'))[0]).toBe(code);
    await gone;
    expect(socket.isOpen()).toBe(false);
  });

  it('sends its close frame last and drops messages behind it', async () => {
    const { client, said, gone, socket } = await meet();
    const heard: number[] = [];
    client.on('message', (data: Buffer) => heard.push(data.length));
    socket.send(Buffer.alloc(50_000), () => socket.close(1000));
    await once(client, 'message');
    client.send('late');
    expect((await once(client, 'close'))[0]).toBe(1000);
    await gone;
    expect([heard, said]).toEqual([[50_000], []]);
  });

  it('closes with 1009 on a long message and drops a cut one', async () => {
    const long = await meet();
    long.client.send(Buffer.alloc(LONGEST + 1));
    expect((await once(long.client, 'close'))[0]).toBe(1009);
    await long.gone;
    const short = await meet();
    short.client.send('half', { fin: false });
    short.client.close();
    await short.gone;
    expect([...long.said, ...short.said]).toEqual([]);
  });

  it('reports a connection that was dropped', async () => {
    const { client, gone } = await meet();
    client.terminate();
    await gone;
  });

  it('destroys a connection that never answers the close frame', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { client, gone, socket } = await meet();
      client.pause();
      socket.close(1000);
      await vi.advanceTimersByTimeAsync(STREAM_CLOSE_MS);
      await gone;
      client.terminate();
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ['another version', { 'sec-websocket-version': '7' }],
    ['no key', { 'sec-websocket-key': '' }],
    ['a malformed key', { 'sec-websocket-key': 'short' }],
    ['another protocol', { upgrade: 'h2c' }],
  ])('refuses an upgrade with %s', async (_name, changed: Record<string, string>) => {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...changed,
    };
    get(`http://${address()}`, { headers }, (response) => resolve(response.statusCode));
    expect(await promise).toBe(400);
  });
});
