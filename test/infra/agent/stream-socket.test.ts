import { once } from 'node:events';
import { createServer } from 'node:http';
import type net from 'node:net';
import type { AddressInfo } from 'node:net';
import { Duplex, type Writable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import * as library from 'ws';
import { createFrameReader } from '../../../infra/pool/agent/stream/socket-frames.ts';
import { upgradeAnswer } from '../../../infra/pool/agent/stream/upgrade.ts';
import { type WebSocket as Accepted, openWebSocket } from '../../../infra/pool/agent/stream/web-socket.ts';
import { limits } from '../../../shared/limits.ts';
import { runs } from '../../seeds.ts';

const { WebSocket } = library;
// Its types do not tell of it.
const { Receiver } = library as unknown as { Receiver: new (options: object) => Writable };
const MOST = 100_000;

interface Frame {
  readonly opcode: number;
  readonly fin: boolean;
  readonly reserved: number;
  readonly masked: boolean;
  readonly payload: Uint8Array;
  readonly mask: Uint8Array;
}

function encode({ opcode, fin, reserved, masked, payload, mask }: Frame): Buffer {
  const { length } = payload;
  const head = length < 126 ? Buffer.alloc(2) : length < 65_536 ? Buffer.alloc(4) : Buffer.alloc(10);
  head[0] = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  head[1] = (masked ? 0x80 : 0) | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  if (!masked) return Buffer.concat([head, payload]);
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ (mask[at & 3] as number))]);
}

/** What a peer said, in one line each. */
function record() {
  const said: string[] = [];
  const say = (what: string, bytes: Uint8Array) => said.push(`${what} ${Buffer.from(bytes).toString('base64')}`);
  return {
    said,
    ears: {
      message: (data: Buffer, isBinary: boolean) => void say(isBinary ? 'binary' : 'text', data),
      ping: (payload: Buffer) => void say('ping', payload),
      pong: () => void said.push('pong'),
      close: (code: number | undefined) => void said.push(`close ${code ?? 1005}`),
      broken: (code: number) => void said.push(`broken ${code}`),
    },
  };
}

/** What the library's own reader hears in the same bytes. */
async function hearByLibrary(pieces: readonly Buffer[]): Promise<string[]> {
  const { said, ears } = record();
  const receiver = new Receiver({ isServer: true, maxPayload: MOST, skipUTF8Validation: true });
  receiver.on('message', ears.message);
  receiver.on('ping', ears.ping);
  receiver.on('pong', ears.pong);
  receiver.on('conclude', ears.close);
  receiver.on('error', (error: Error) => {
    const [status] = Object.getOwnPropertySymbols(error);
    ears.broken((error as unknown as Record<symbol, number>)[status as symbol] as number);
  });
  for (const piece of pieces) if (receiver.writable) receiver.write(Buffer.from(piece));
  await new Promise((resolve) => setImmediate(resolve));
  return said;
}

function hear(pieces: readonly Buffer[]): string[] {
  const { said, ears } = record();
  const reader = createFrameReader(MOST, ears);
  for (const piece of pieces) reader.push(Buffer.from(piece));
  return said;
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i]));
}

const payload = fc.oneof(
  { weight: 8, arbitrary: fc.uint8Array({ maxLength: 140 }) },
  { weight: 2, arbitrary: fc.integer({ min: 65_000, max: 101_000 }).map((length) => new Uint8Array(length).fill(7)) },
);
const mask = fc.uint8Array({ minLength: 4, maxLength: 4 });
const seldom = fc.integer({ min: 0, max: 40 }).map((n) => n === 0);
const anyFrame: fc.Arbitrary<Frame> = fc.record({
  opcode: fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(0, 1, 2, 9, 10) },
    { weight: 1, arbitrary: fc.constantFrom(3, 8, 11, 15) },
  ),
  fin: fc.boolean(),
  reserved: seldom.chain((odd) => (odd ? fc.integer({ min: 1, max: 7 }) : fc.constant(0))),
  masked: seldom.map((odd) => !odd),
  payload,
  mask,
});
/** Messages whole and in fragments, with questions between them. */
const rightFrames = fc
  .array(
    fc.record({
      opcode: fc.constantFrom(1, 2),
      parts: fc.array(payload, { minLength: 1, maxLength: 4 }),
      asks: fc.boolean(),
      mask,
    }),
    { maxLength: 6 },
  )
  .map((messages) =>
    messages.flatMap(({ opcode, parts, asks, mask: key }) =>
      parts.flatMap((part, at) => {
        const frame = { reserved: 0, masked: true, mask: key };
        const own = { ...frame, opcode: at === 0 ? opcode : 0, fin: at === parts.length - 1, payload: part };
        return asks ? [own, { ...frame, opcode: 9, fin: true, payload: part.subarray(0, 125) }] : [own];
      }),
    ),
  );
const places = fc.array(fc.nat(300_000), { maxLength: 8 });

/** With `SEEDS=10000`, beside others. */
const THOROUGH_MS_MAX = 60_000;

describe('frames of a WebSocket, beside the library that others use', () => {
  it.each([
    ['right ones', rightFrames],
    ['any', fc.array(anyFrame, { maxLength: 12 })],
  ])('%s, cut anywhere', { timeout: THOROUGH_MS_MAX }, async (_name, frames) => {
    await fc.assert(
      fc.asyncProperty(frames, places, async (some, at) => {
        // What follows the last one breaks the connection, so that a head that is cut off says nothing yet in both.
        const pieces = cut(Buffer.concat([...some.map(encode), Buffer.alloc(16)]), at);
        expect(hear(pieces)).toEqual(await hearByLibrary(pieces));
      }),
      { numRuns: runs(200, 3_000) },
    );
  });

  it('any bytes', { timeout: THOROUGH_MS_MAX }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), places, async (some, at) => {
        const pieces = cut(Buffer.concat([some, Buffer.alloc(16)]), at);
        const [ours, library] = [hear(pieces), await hearByLibrary(pieces)];
        expect(ours).toEqual(library);
      }),
      { numRuns: runs(500, 6_000) },
    );
  });

  it.each([
    [Buffer.alloc(0), 'close 1005'],
    [Buffer.of(0x03, 0xe8), 'close 1000'],
    [Buffer.from('\x0b\xb8bye', 'latin1'), 'close 3000'],
    [Buffer.of(0x03), 'broken 1002'],
    [Buffer.of(0x03, 0xed), 'broken 1002'],
    [Buffer.of(0x00, 0x01), 'broken 1002'],
  ])('a farewell of %j: %s', async (said, heard) => {
    const frame = { opcode: 8, fin: true, reserved: 0, masked: true, mask: Buffer.of(1, 2, 3, 4), payload: said };
    const pieces = [encode(frame), encode({ ...frame, opcode: 2 })];
    expect(hear(pieces)).toEqual([heard]);
    expect(await hearByLibrary(pieces)).toEqual([heard]);
  });

  it('a length that is only claimed costs no memory', () => {
    const claimed = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0x20, 0, 0, 1, 2, 3, 4, 5]);
    const before = process.memoryUsage().arrayBuffers;
    const readers = Array.from({ length: 64 }, () => createFrameReader(2 ** 22, record().ears));
    for (const reader of readers) reader.push(claimed);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 100_000);
  });
});

describe('a WebSocket of the agent', () => {
  const server = createServer();
  const accepted: ((socket: Accepted) => void)[] = [];
  server.on('upgrade', (incoming, connection, head) => {
    const answer = upgradeAnswer(incoming);
    if (answer === undefined) return connection.end('HTTP/1.1 400 Refused\r\n\r\n');
    accepted.shift()?.(openWebSocket({ connection: connection as net.Socket, answer, head, most: MOST }));
  });
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => void server.close());

  /** The library's client, and our end of it with all it heard. */
  async function meet() {
    const { said, ears } = record();
    let closed = () => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const ours = new Promise<Accepted>((resolve) => {
      accepted.push((socket) => {
        socket.listen({ ...ears, closed });
        resolve(socket);
      });
    });
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await once(client, 'open');
    return { client, said, gone, socket: await ours };
  }
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

  it('hears and says messages of any length, whole and in fragments, as the library does', async () => {
    const { client, said, socket } = await meet();
    const sizes = [0, 1, 3, 125, 126, 127, 3_238, 65_535, 65_536, 99_999];
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

  it('a place that is used again changes nothing that was sent, though nobody reads for a while', async () => {
    const { client, socket } = await meet();
    const heard: number[] = [];
    client.on('message', (data: Buffer) => {
      if (data.every((byte) => byte === data[0])) heard.push(data[0] as number);
    });
    client.pause();
    const place = Buffer.alloc(15_000);
    const numbers = Array.from({ length: 1_000 }, (_, number) => number & 0xff);
    for (const number of numbers) socket.send(place.fill(number), () => {});
    expect(socket.unsent()).toBeGreaterThan(0);
    client.resume();
    await expect.poll(() => heard, { timeout: 5_000 }).toEqual(numbers);
    expect(socket.unsent()).toBe(0);
    client.terminate();
  });

  it('answers questions, and asks', async () => {
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
    ['1000', (client: library.WebSocket) => client.close(1000), 1000],
    ['a code of its own', (client: library.WebSocket) => client.close(3_456, 'bye'), 3_456],
    ['none', (client: library.WebSocket) => client.close(), 1005],
  ])('a farewell with %s is answered, and the connection ends', async (_name, close, code) => {
    const { client, gone, socket } = await meet();
    close(client);
    expect((await once(client, 'close'))[0]).toBe(code);
    await gone;
    expect(socket.isOpen()).toBe(false);
  });

  it('says farewell behind what it said, and hears nothing after it', async () => {
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

  it('a message that is too long ends it with 1009, and one that is cut short is none', async () => {
    const long = await meet();
    long.client.send(Buffer.alloc(MOST + 1));
    expect((await once(long.client, 'close'))[0]).toBe(1009);
    await long.gone;
    const short = await meet();
    short.client.send('half', { fin: false });
    short.client.close();
    await short.gone;
    expect([...long.said, ...short.said]).toEqual([]);
  });

  it('who hangs up without a farewell is gone', async () => {
    const { client, gone } = await meet();
    client.terminate();
    await gone;
  });

  it('who never says farewell is hung up on', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { client, gone, socket } = await meet();
      client.pause();
      socket.close(1000);
      await vi.advanceTimersByTimeAsync(limits.streamCloseMs.value);
      await gone;
      client.terminate();
    } finally {
      vi.useRealTimers();
    }
  });

  it('who asks and does not read gets no more answers than there is room for', () => {
    const written: Uint8Array[] = [];
    const connection = new Duplex({ read() {}, write: (bytes: Uint8Array) => void written.push(bytes) });
    const socket = openWebSocket({
      connection: Object.assign(connection, { setTimeout() {}, setNoDelay() {} }) as unknown as net.Socket,
      answer: '',
      head: Buffer.alloc(0),
      most: MOST,
    });
    const ask = { opcode: 9, fin: true, reserved: 0, masked: true, mask: Buffer.alloc(4), payload: Buffer.alloc(125) };
    const asked = Buffer.concat(Array.from({ length: 2_000 }, () => encode(ask)));
    for (let i = 0; i < 10; i++) connection.emit('data', Buffer.from(asked));
    expect(socket.unsent()).toBeLessThan(limits.streamUnsentBytes.value + 200);
    socket.terminate();
  });

  it.each([
    ['another method', { method: 'POST' }],
    ['another version', { version: '8' }],
    ['no key', { key: '' }],
    ['a key that is none', { key: 'short' }],
    ['another protocol', { upgrade: 'h2c' }],
  ])(
    '%s is no upgrade',
    (_name, {
      method = 'GET',
      version = '13',
      key = 'x'.repeat(22).concat('=='),
      upgrade = 'WebSocket',
    }: Record<string, string>) => {
      const headers = { upgrade, 'sec-websocket-version': version, ...(key && { 'sec-websocket-key': key }) };
      expect(upgradeAnswer({ method, headers })).toBeUndefined();
    },
  );

  it('the key is answered as RFC 6455 §1.3 does', () => {
    const headers = {
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    expect(upgradeAnswer({ method: 'GET', headers })).toContain(
      'sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n',
    );
  });
});
