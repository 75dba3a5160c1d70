// The streaming load client against a server that plays the edge.
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { readArguments } from '../../../infra/cli/arguments.ts';
import type { Watched } from '../../../infra/cli/load-progress.ts';
import { loadStream } from '../../../infra/cli/load-stream.ts';
import { wav } from '../../wav.ts';
import { folderForTest } from '../local/folder.ts';

let edge: Server;
let url: string;
let seen: { url: URL; authorization: string | undefined }[];
/** Plays the edge on one connection. */
let serve: (socket: WebSocket, request: IncomingMessage) => void;
let refuse: number | undefined;

beforeAll(async () => {
  const sockets = new WebSocketServer({ noServer: true });
  edge = createServer();
  edge.on('upgrade', (request, socket, head) => {
    seen.push({ url: new URL(request.url ?? '', url), authorization: request.headers.authorization });
    if (refuse !== undefined) {
      socket.end(`HTTP/1.1 ${refuse} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
      return;
    }
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
const results = (transcript: string, final: boolean, ...ends: number[]) =>
  JSON.stringify({
    type: 'Results',
    is_final: final,
    channel: { alternatives: [{ transcript, words: ends.map((end) => ({ word: 'w', start: 0, end })) }] },
  });

describe('R13: auricle load --stream, as a Deepgram client', () => {
  /** Says a word for each second it heard, and how much it heard. */
  const listen = (heard: number[]) => (socket: WebSocket) => {
    let bytes = 0;
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) {
        bytes += data.length;
        if (bytes % 32_000 === 0) {
          const second = bytes / 32_000;
          socket.send(results('w', false, second));
          socket.send(results('w', true, second));
        }
        return;
      }
      heard.push(bytes);
      socket.send(JSON.stringify({ type: 'Metadata' }), () => socket.close(1000));
    });
  };

  it('sends the whole schedule on every stream and measures what comes after the warm-up', async () => {
    const heard: number[] = [];
    serve = listen(heard);
    const { exit, value, text } = await run('--dialect', 'deepgram', ...quick);
    // A second and a half of warm-up and three seconds, of 32,000 bytes each.
    expect(heard).toEqual([144_000, 144_000, 144_000]);
    expect(value).toMatchObject({ parallel: 3, opened: 3, ended: 3, errors: {}, trouble: {}, audioSeconds: 9 });
    // The word of the first second is part of the warm-up; those at 2, 3 and 4 s count, as audio and bytes do.
    expect(value).toMatchObject({ words: 9, bytesSent: 3 * (96_000 + '{"type":"CloseStream"}'.length) });
    expect(value).toMatchObject({
      partialLatency: { p50: expect.any(Number) },
      finalLatency: { p99: expect.any(Number) },
    });
    expect([exit, text.split('\n')[0]]).toEqual([0, expect.stringContaining('3 of 3 streams ended well')]);
    expect(seen[0]?.authorization).toBe('Bearer T');
    expect(Object.fromEntries(seen[0]?.url.searchParams ?? [])).toEqual({
      model: 'reference-en',
      encoding: 'linear16',
      sample_rate: '16000',
      channels: '1',
      interim_results: 'true',
    });
  });

  it('fails for other words than expected', async () => {
    serve = listen([]);
    // Three whole passes of a second and a half, in which the server says a word each second.
    const given = ['--dialect', 'deepgram', ...quick];
    expect(await run(...given, '--expect', 'w')).toMatchObject({ exit: 0, value: { ended: 3, errors: {} } });
    const { exit, value, text } = await run(...given, '--expect', 'v');
    expect([exit, value]).toMatchObject([1, { ended: 0, errors: { words_differ: 3 } }]);
    expect(text).toContain('word 1 is "w", and "v" was expected');
  });

  it('sends a frame every tenth of a second at real-time pace', async () => {
    const times: number[] = [];
    serve = (socket) => {
      listen([])(socket);
      socket.on('message', () => times.push(performance.now()));
    };
    await run('--dialect', 'deepgram', '--seconds', '1', '--warm-up', '0', '--parallel', '1');
    expect(times).toHaveLength(11);
    // The tenth frame is due 900 ms after the first and is never early; late it may be.
    expect((times[9] as number) - (times[0] as number)).toBeGreaterThan(800);
  });

  it('counts streams that were refused, and those that broke off, by their code', async () => {
    refuse = 429;
    expect(await run('--dialect', 'deepgram', ...quick)).toMatchObject({
      exit: 1,
      value: { opened: 0, ended: 0, errors: { http_429: 3 } },
    });
    refuse = undefined;
    const closed = createServer();
    await new Promise<void>((settle) => closed.listen(0, '127.0.0.1', settle));
    const { port } = closed.address() as AddressInfo;
    await new Promise((settle) => closed.close(settle));
    const nowhere = await run('--edge', `http://127.0.0.1:${port}`, '--dialect', 'deepgram', ...quick);
    expect(nowhere.value).toHaveProperty('messages.ECONNREFUSED', expect.stringContaining(`127.0.0.1:${port}`));
    let streams = 0;
    serve = (socket) => {
      streams += 1;
      if (streams === 1) socket.once('message', () => socket.close(1011));
      else listen([])(socket);
    };
    expect(await run('--dialect', 'deepgram', ...quick)).toMatchObject({
      exit: 1,
      value: { opened: 3, ended: 2, errors: { closed_1011: 1 } },
    });
  });
});

describe('R13: auricle load --stream, as an OpenAI client', () => {
  it('configures the session, appends 24 kHz, commits, and waits for what was committed', async () => {
    const heard: number[] = [];
    const sessions: unknown[] = [];
    serve = (socket) => {
      const say = (type: string, rest: object = {}) => socket.send(JSON.stringify({ type, event_id: 'e', ...rest }));
      const transcription = 'conversation.item.input_audio_transcription';
      let bytes = 0;
      say('session.created', { session: {} });
      socket.on('message', (data: Buffer) => {
        const said = JSON.parse(String(data));
        if (said.type === 'session.update') {
          sessions.push(said.session);
          say('session.updated', { session: said.session });
        }
        if (said.type === 'input_audio_buffer.append') {
          bytes += Buffer.from(said.audio, 'base64').length;
          if (bytes !== 96_000) return;
          say('input_audio_buffer.speech_stopped', { audio_end_ms: 1_800, item_id: 'a' });
          say('input_audio_buffer.committed', { item_id: 'a' });
          say(`${transcription}.delta`, { item_id: 'a', delta: 'one' });
          say(`${transcription}.completed`, { item_id: 'a', transcript: 'one two' });
        }
        if (said.type === 'input_audio_buffer.commit') {
          heard.push(bytes);
          say('input_audio_buffer.committed', { item_id: 'b' });
        }
        if (said.type !== 'input_audio_buffer.clear') return;
        say('input_audio_buffer.cleared');
        say(`${transcription}.completed`, { item_id: 'b', transcript: 'two' });
      });
    };
    const { exit, value } = await run('--dialect', 'openai', ...quick);
    expect(heard).toEqual([216_000, 216_000, 216_000]);
    expect(sessions[0]).toMatchObject({ audio: { input: { format: { type: 'audio/pcm', rate: 24_000 } } } });
    expect([exit, value]).toEqual([
      0,
      expect.objectContaining({ ended: 3, words: 9, errors: {}, partialLatency: undefined }),
    ]);
    expect(value).toMatchObject({ finalLatency: { p50: expect.any(Number) } });
  });

  it('counts a session that was refused in words', async () => {
    serve = (socket) => {
      socket.send(JSON.stringify({ type: 'error', error: { code: 'allowance_streams', message: '' } }));
      socket.close(4429);
    };
    const { exit, value } = await run('--dialect', 'openai', ...quick);
    expect([exit, value]).toEqual([1, expect.objectContaining({ opened: 0, errors: { allowance_streams: 3 } })]);
  });
});

describe('R13: auricle load --stream, as an app', () => {
  /** Hears all on two agents, one after the other. */
  const play = (socket: WebSocket) => {
    const say = (type: string, more: object = {}) => socket.send(JSON.stringify({ type, ...more }));
    socket.on('message', (data: Buffer, isBinary) => {
      const { type } = isBinary ? { type: 'audio' } : JSON.parse(String(data));
      if (type === 'start') {
        say('started', { v: 1, session: 's', position: 0, time: 0, windowBytes: 3_145_728 });
        say('ready', { agent: 'a', model: 'm', revision: 'r' });
      }
      if (type !== 'end') return;
      say('moved', { agent: 'b' });
      say('segment', { index: 0, start: 0, end: 1, text: 'w', words: [], ending: 'end' });
      say('final', { durationSeconds: 1, segments: 1 });
      socket.close(1000);
    });
  };

  it('exits 0 when another agent went on, and nothing was lost', async () => {
    serve = play;
    const value = { ended: 3, errors: {}, trouble: {}, notices: { moved: 3 } };
    expect(await run('--dialect', 'auricle', ...quick)).toMatchObject({ exit: 0, value });
  });
});

describe('auricle load --stream', () => {
  it('ends its streams when it is interrupted, and tells what was heard', async () => {
    const interrupt = new AbortController();
    serve = (socket) => {
      let frames = 0;
      socket.on('message', (_: Buffer, isBinary) => {
        if (isBinary) {
          frames += 1;
          if (frames === 5) interrupt.abort();
          return;
        }
        socket.send(JSON.stringify({ type: 'Metadata' }), () => socket.close(1000));
      });
    };
    const { signal } = interrupt;
    const { exit, value, text } = await watched(
      { signal },
      '--dialect',
      'deepgram',
      '--parallel',
      '1',
      '--seconds',
      '60',
    );
    expect([exit, value]).toEqual([130, expect.objectContaining({ ended: 1, interrupted: true })]);
    expect(text).toMatch(/^interrupted: 1 of 1 streams ended well/);
  });

  it('says what is wrong with the command', async () => {
    expect(await run('--dialect', 'latin')).toMatchObject({
      exit: 2,
      text: expect.stringContaining('no dialect latin'),
    });
    expect(await run('--pace', 'slow')).toMatchObject({ exit: 2, text: expect.stringContaining('no pace slow') });
    expect(await run('--seconds', '0')).toMatchObject({ exit: 2, text: expect.stringContaining('--seconds') });
    expect(await run('--audio', 'none.wav')).toMatchObject({ exit: 2, text: expect.stringContaining('none.wav') });
    const text = path.join(folderForTest(), 'a.txt');
    writeFileSync(text, 'these are words and no sound at all');
    expect(await run('--audio', text)).toMatchObject({ exit: 2, text: expect.stringContaining('no sound file') });
  });
});
