// The streaming load client against a server that plays the edge.
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { loadStream } from '../../../infra/cli/load/stream.ts';
import type { Watched } from '../../../infra/cli/progress.ts';
import { wav } from '../../wav.ts';
import { folderForTest } from '../local/folder.ts';

let edge: Server;
let url: string;
let seen: { url: URL }[];
/** Plays the edge on one connection. */
let serve: (socket: WebSocket, request: IncomingMessage) => void;

beforeAll(async () => {
  const sockets = new WebSocketServer({ noServer: true });
  edge = createServer();
  edge.on('upgrade', (request, socket, head) => {
    seen.push({ url: new URL(request.url ?? '', url) });
    sockets.handleUpgrade(request, socket, head, (upgraded) => serve(upgraded, request));
  });
  await new Promise<void>((settle) => edge.listen(0, '127.0.0.1', settle));
  url = `http://127.0.0.1:${(edge.address() as AddressInfo).port}`;
});
afterAll(() => void edge.close());

function run(...options: string[]) {
  return watched({}, ...options);
}

function watched(watching: Watched, ...options: string[]) {
  seen = [];
  const file = path.join(folderForTest(), 'a.wav');
  // Half a second: with the pause behind it a pass takes a second and a half.
  writeFileSync(file, wav(new Int16Array(8_000).fill(1_000)));
  const given = readArguments(['load', '--stream', '--edge', url, '--audio', file, ...options]);
  if ('problem' in given) throw new Error(given.problem);
  return loadStream(given, 'T', watching);
}

const quick = ['--pace', 'max', '--seconds', '3', '--warm-up', '1', '--parallel', '3'];

/** Bytes of the position before the audio of a frame. */
const POSITION = 6;

type Say = (type: string, more?: object) => void;

/** Plays the edge: reports each message with what it means to `on`. */
const play = (on: { audio?(say: Say, bytes: number): void; end?(say: Say): void }) => (socket: WebSocket) => {
  const say: Say = (type, more = {}) => socket.send(JSON.stringify({ type, ...more }));
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) return on.audio?.(say, data.length - POSITION);
    const { type } = JSON.parse(String(data));
    if (type === 'start') {
      say('started', { v: 1, session: 's', position: 0, time: 0, windowBytes: 3_145_728 });
      say('ready', { agent: 'a', model: 'm', revision: 'r' });
    }
    if (type !== 'end') return undefined;
    on.end?.(say);
    say('final', { durationSeconds: 1, segments: 1 });
    return socket.close(1000);
  });
};

describe('R13: auricle load --stream', () => {
  /** Sends a word for each second of audio, and records the bytes of each stream. */
  const listen = (heard: number[]) => (socket: WebSocket) => {
    let bytes = 0;
    const word = (end: number) => ({ index: end - 1, text: 'w', words: [{ word: 'w', start: 0, end, confidence: 1 }] });
    play({
      audio(say, length) {
        bytes += length;
        if (bytes % 32_000 !== 0) return;
        const end = bytes / 32_000;
        say('interim', { ...word(end), start: 0, end, stable: 0 });
        say('segment', { ...word(end), start: 0, end, ending: 'pause' });
      },
      end: () => void heard.push(bytes),
    })(socket);
  };

  it('sends the whole schedule on every stream and measures what comes after the warm-up', async () => {
    const heard: number[] = [];
    serve = listen(heard);
    const { exit, value, text } = await run(...quick);
    // A second and a half of warm-up and three seconds, of 32,000 bytes each.
    expect(heard).toEqual([144_000, 144_000, 144_000]);
    expect(value).toMatchObject({ parallel: 3, opened: 3, ended: 3, errors: {}, audioSeconds: 9 });
    // The word of the first second is part of the warm-up; those at 2, 3 and 4 s count, as audio and bytes do.
    const frames = 3 * (96_000 + 30 * POSITION);
    expect(value).toMatchObject({ words: 9, bytesSent: frames + 3 * '{"type":"end"}'.length });
    expect(value).toMatchObject({
      partialLatency: { p50: expect.any(Number) },
      finalLatency: { p99: expect.any(Number) },
    });
    expect([exit, text.split('\n')[0]]).toEqual([0, expect.stringContaining('3 of 3 streams ended well')]);
    expect(seen[0]?.url.pathname).toBe('/v1/stream');
  });

  it('fails for other words than expected', async () => {
    serve = listen([]);
    // Three whole passes of a second and a half, in which the server sends a word each second.
    expect(await run(...quick, '--expect', 'w')).toMatchObject({ exit: 0, value: { ended: 3, errors: {} } });
    const { exit, value, text } = await run(...quick, '--expect', 'v');
    expect([exit, value]).toMatchObject([1, { ended: 0, errors: { words_differ: 3 } }]);
    expect(text).toContain('word 1 is "w", and "v" was expected');
  });

  it('sends a frame every tenth of a second at real-time pace', async () => {
    const times: number[] = [];
    serve = play({ audio: () => void times.push(performance.now()) });
    await run('--seconds', '1', '--warm-up', '0', '--parallel', '1');
    expect(times).toHaveLength(10);
    // The tenth frame is due 900 ms after the first and is never early; late it may be.
    expect((times[9] as number) - (times[0] as number)).toBeGreaterThan(800);
  });

  it('counts refused streams by their code', async () => {
    serve = (socket) => {
      socket.send(JSON.stringify({ type: 'refusal', reason: 'scope_missing', message: 'No.' }));
      socket.close(4429);
    };
    const { exit, value } = await run(...quick);
    expect([exit, value]).toMatchObject([1, { opened: 0, ended: 0, errors: { scope_missing: 3 } }]);
  });

  it('exits 0 when another agent continued and nothing was lost', async () => {
    serve = play({
      end(say) {
        say('moved', { agent: 'b' });
        say('segment', { index: 0, start: 0, end: 1, text: 'w', words: [], ending: 'end' });
      },
    });
    expect(await run(...quick)).toMatchObject({ exit: 0, value: { ended: 3, errors: {}, notices: { moved: 3 } } });
  });

  it('ends its streams when interrupted and prints the results so far', async () => {
    const interrupt = new AbortController();
    let frames = 0;
    serve = play({
      audio() {
        frames += 1;
        if (frames === 5) interrupt.abort();
      },
    });
    const { signal } = interrupt;
    const { exit, value, text } = await watched({ signal }, '--parallel', '1', '--seconds', '60');
    expect([exit, value]).toEqual([130, expect.objectContaining({ ended: 1, interrupted: true })]);
    expect(text).toMatch(/^interrupted: 1 of 1 streams ended well/);
  });

  it('says what is wrong with the command', async () => {
    expect(await run('--pace', 'slow')).toMatchObject({
      exit: 2,
      text: expect.stringContaining('--pace slow: use realtime or max'),
    });
    expect(await run('--seconds', '0')).toMatchObject({ exit: 2, text: expect.stringContaining('--seconds') });
    expect(await run('--audio', 'none.wav')).toMatchObject({ exit: 2, text: expect.stringContaining('none.wav') });
    const text = path.join(folderForTest(), 'a.txt');
    writeFileSync(text, 'these are words and no sound at all');
    expect(await run('--audio', text)).toMatchObject({
      exit: 2,
      text: expect.stringContaining('is not an audio file'),
    });
  });
});
