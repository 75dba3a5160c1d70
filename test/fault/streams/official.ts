// Published clients of OpenAI and Deepgram, with the transcript that each received.
import net from 'node:net';
import { DeepgramClient } from '@deepgram/sdk';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import type { Running } from '../../stack/running.ts';

const model = 'reference-en';
const FRAME_BYTES = 3_200;
/**
 * Interval of keep-alives, ms: Deepgram closes a stream after ten silent seconds, and a stack may recover
 * more slowly.
 */
const KEEP_ALIVE_MS = 3_000;

export interface Official {
  /** Sends frames of a tenth of a second, without waiting. */
  send(audio: Uint8Array): void;
  /** Resolves at words of the unfinished second sentence. */
  inSecond(): Promise<void>;
  /** Returns texts and times of the whole story, or of so many utterances. */
  finish(utterances?: number): Promise<unknown>;
  /** Resolves when the client reports a lost connection. */
  broken(): Promise<void>;
  /** Messages of errors, and close codes that are not normal. */
  readonly troubles: readonly string[];
  /** True after the first words. */
  heard(): boolean;
  /** Ends the connection, whatever its state. */
  close(): void;
}

type Message = { readonly type: string } & Readonly<Record<string, unknown>>;

/** Received events, and waits for further ones. */
function createLog() {
  const said: Message[] = [];
  let waiting: (() => void)[] = [];
  return {
    said,
    note(message: unknown) {
      said.push(message as Message);
      const told = waiting;
      waiting = [];
      for (const look of told) look();
    },
    async until(found: () => boolean) {
      while (!found()) await new Promise<void>((resolve) => void waiting.push(resolve));
    },
  };
}

const frames = (audio: Uint8Array): Uint8Array[] =>
  Array.from({ length: Math.ceil(audio.length / FRAME_BYTES) }, (_, at) =>
    audio.subarray(at * FRAME_BYTES, (at + 1) * FRAME_BYTES),
  );

const PREFIX = 'conversation.item.input_audio_transcription';

export async function openOpenAi({ stack }: Running): Promise<Official> {
  const client = new OpenAI({ apiKey: stack.token, baseURL: `${stack.url}/v1`, maxRetries: 0 });
  // The client always uses TLS; the stack has none, so the test makes the connection.
  const createConnection = () => net.connect(Number(new URL(stack.url).port), '127.0.0.1');
  const socket = new OpenAIRealtimeWS({ intent: 'transcription', options: { createConnection } as never }, client);
  const log = createLog();
  const troubles: string[] = [];
  const of = (type: string) => log.said.filter((event) => event.type === type);
  socket.on('event', log.note);
  socket.on('error', ({ message }) => troubles.push(message));
  socket.socket.on('close', (code) => {
    troubles.push(`closed with ${code}`);
    log.note({ type: 'closed' });
  });
  await log.until(() => of('session.created').length > 0 || of('closed').length > 0);
  if (of('closed').length > 0) throw new Error(troubles.join(', '));
  const input = { format: { type: 'audio/pcm', rate: 16_000 }, transcription: { model } };
  socket.send({ type: 'session.update', session: { type: 'transcription', audio: { input } } } as never);
  return {
    troubles,
    send(audio) {
      for (const frame of frames(audio)) {
        socket.send({ type: 'input_audio_buffer.append', audio: Buffer.from(frame).toString('base64') });
      }
    },
    inSecond: () => log.until(() => new Set(of(`${PREFIX}.delta`).map(({ item_id }) => item_id)).size > 1),
    broken: () => log.until(() => of('closed').length > 0),
    heard: () => of(`${PREFIX}.delta`).length > 0,
    close: () => socket.close(),
    async finish(utterances = 2) {
      await log.until(() => of(`${PREFIX}.completed`).length >= utterances);
      const told = of(`${PREFIX}.completed`).map(({ item_id, transcript, usage }) => {
        const own = log.said.filter((event) => event.item_id === item_id);
        const deltas = own.flatMap(({ type, delta }) => (type === `${PREFIX}.delta` ? [delta] : []));
        const times = own.flatMap(({ audio_start_ms: from, audio_end_ms: to }) => [from, to].filter(Boolean));
        return { transcript, deltas: deltas.join(''), times, usage };
      });
      socket.socket.removeAllListeners('close');
      socket.close();
      return told;
    },
  };
}

interface Result extends Message {
  readonly is_final: boolean;
  readonly start: number;
  readonly channel: { readonly alternatives: readonly [{ readonly transcript: string; readonly words: unknown[] }] };
}

/** Opens a client that reconnects by itself; events of former connections do not count. */
export async function openDeepgram(
  { stack }: Running,
  second: number,
): Promise<Official & { readonly back: () => Promise<void> }> {
  const production = stack.url.replace('http', 'ws');
  const environment = { base: stack.url, production, agent: production, agentRest: stack.url };
  const client = new DeepgramClient({ accessToken: stack.token, environment });
  const wish = { model, encoding: 'linear16', sample_rate: 16_000, interim_results: 'true' };
  const socket = await client.listen.v1.connect(wish as never);
  const log = createLog();
  const troubles: string[] = [];
  const opened = () => log.said.filter(({ type }) => type === 'opened').length;
  const since = () => log.said.slice(log.said.findLastIndex(({ type }) => type === 'opened') + 1);
  const results = () => since().filter(({ type }) => type === 'Results') as Result[];
  socket.on('open', () => log.note({ type: 'opened' }));
  socket.on('message', log.note);
  socket.on('error', ({ message }) => troubles.push(message));
  socket.on('close', ({ code }) => {
    if (code === 1000) return;
    troubles.push(`closed with ${code}`);
    log.note({ type: 'closed' });
  });
  socket.connect();
  await socket.waitForOpen().catch((event: { readonly message?: string }) => {
    socket.close();
    throw new Error(event.message);
  });
  const keepAlive = setInterval(() => {
    if (socket.readyState === WebSocket.OPEN) socket.sendKeepAlive({ type: 'KeepAlive' });
  }, KEEP_ALIVE_MS);
  return {
    troubles,
    send(audio) {
      for (const frame of frames(audio)) socket.sendMedia(frame);
    },
    inSecond: () => log.until(() => results().some(({ start, is_final: final }) => !final && start >= second - 0.5)),
    broken: () => log.until(() => log.said.some(({ type }) => type === 'closed')),
    heard: () => results().some(({ channel }) => channel.alternatives[0].transcript !== ''),
    close() {
      clearInterval(keepAlive);
      socket.close();
    },
    back() {
      // The client tries once while no server listens, then leaves it to its program.
      if (troubles.some((trouble) => trouble.includes('ECONNREFUSED'))) socket.socket.reconnect();
      return log.until(() => opened() > 1);
    },
    async finish() {
      clearInterval(keepAlive);
      socket.sendCloseStream({ type: 'CloseStream' });
      await log.until(() => log.said.at(-1)?.type === 'Metadata');
      const told = results().filter(
        ({ is_final: final, channel }) => final && channel.alternatives[0].transcript !== '',
      );
      return [told.map(({ start, channel }) => [start, channel]), log.said.at(-1)?.duration];
    },
  };
}
