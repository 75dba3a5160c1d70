// The edge of the agent's half, a process of its own: it takes the agent's hello, signs tickets for it, seals so many
// streams to it, each a frame every tenth of a second, and times what the agent says.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { importJWK, type JWK, SignJWT } from 'jose';
import { WebSocketServer } from 'ws';
import { createWordClock, type WordClock } from '../../../infra/cli/live/latency.ts';
import { type SealSetup, setupSender } from '../../../shared/seal/setup.ts';
import type { LinkControl, LinkEvent } from '../../../shared/stream/link.ts';
import { encodeAudio, encodeControl } from '../../../shared/stream/link-record.ts';
import { type Expected, keyOf } from './expected-interims.ts';
import { openRawSocket } from './raw-socket.ts';
import { Samples } from './samples.ts';
import { openRecords, sealRecords } from './stream-seal.ts';
import { aheadBy, FORMAT, FRAME_BYTES, FRAME_MS } from './traffic.ts';

export interface AgentLoadOrder {
  readonly ticketKey: JWK;
  /** One pass of the repeated audio, base64 of 16-bit samples; whole frames. */
  readonly sound: string;
  readonly model: string;
  readonly agentUrl: string;
  readonly agent: string;
  readonly streams: number;
  readonly seconds: number;
  readonly warmSeconds: number;
  readonly expected: Readonly<Record<string, Expected>>;
  /** Engine time, ms, subtracted from every latency. */
  readonly engineMs: number;
  /** Number of the first stream: load clients beside this one have others. */
  readonly first: number;
  /** The agent's attestation, for a load client that is not its edge. */
  readonly attestation?: string;
}

export interface AgentLoadReport {
  readonly opened: number;
  readonly openMs: number;
  readonly sent: number;
  readonly ended: number;
  /** Seconds of acknowledged audio less those sent. */
  readonly lostSeconds: number;
  readonly interims: number;
  readonly segments: number;
  /** Interims of an unknown step, which are not timed. */
  readonly unexpected: number;
  readonly failures: Readonly<Record<string, number>>;
  /** Latency of interims from their last required frame, less engine time, ms. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
  readonly lateP99: number;
  /** Latency from the end of a word to the first event with it (`infra/cli/live/latency.ts`), ms. */
  readonly wordP50: number;
  readonly wordP99: number;
}

export type AgentLoadMessage =
  | { readonly port: number }
  | { readonly attested: string }
  | { readonly began: true }
  | { readonly report: AgentLoadReport };

const OPENING = 25;
const KEPT = 256;
const CLOSE_MS_MAX = 30_000;
/** Step of the reference network, and the audio window of one, seconds. */
const HOP = 0.32;
const WINDOW = 0.335;
const send = (message: AgentLoadMessage) => void process.send?.(message);
const digest = (data: string | Uint8Array) => createHash('sha256').update(data).digest('base64url');

/** The agent's attestation, as its hello on the heartbeat socket tells it. */
let attestation = '';
const server = createServer((_, response) => void response.writeHead(404).end());
const heartbeats = new WebSocketServer({ server });
heartbeats.on('connection', (socket) => {
  socket.send(JSON.stringify({ type: 'welcome', intervalMs: 1_000 }));
  socket.on('message', (data) => {
    const said = JSON.parse(Buffer.from(String(data).split('.')[1] ?? '', 'base64url').toString());
    if (said.type === 'audit') socket.send(JSON.stringify({ type: 'ack', seq: said.seq }));
    if (said.type !== 'hello') return;
    attestation = said.attestation;
    send({ attested: attestation });
  });
});
server.listen(0, '127.0.0.1', () => send({ port: (server.address() as AddressInfo).port }));

async function setUp(): Promise<SealSetup> {
  const payload = JSON.parse(Buffer.from(attestation.split('.')[1] ?? '', 'base64url').toString());
  const keys: (JsonWebKey & { use?: string })[] = payload['x-ms-runtime'].keys;
  const key = keys.find(({ use }) => use === 'enc');
  if (!key) throw new Error('no seal key in the attestation');
  return setupSender(key, 5, attestation);
}

interface Stream {
  readonly say: (plaintext: Uint8Array, final?: boolean) => void;
  readonly sentAt: Float64Array;
  readonly clock: WordClock;
  readonly closed: Promise<void>;
  sent: number;
  alive: boolean;
  heardSeconds: number | undefined;
}

async function run(order: AgentLoadOrder): Promise<AgentLoadReport> {
  if (order.attestation !== undefined) attestation = order.attestation;
  const sound = Buffer.from(order.sound, 'base64');
  const pass = sound.length / FRAME_BYTES;
  const setup = await setUp();
  const key = await importJWK(order.ticketKey, 'ES256');
  const enc = Buffer.from(setup.enc).toString('base64url');
  const latency = new Samples();
  const late = new Samples();
  const words = new Samples();
  const failures: Record<string, number> = {};
  const counts = { interims: 0, segments: 0, unexpected: 0 };
  let measuring = false;
  const fail = (why: string) => {
    failures[why] = (failures[why] ?? 0) + 1;
  };

  const sign = () => {
    const now = Math.floor(Date.now() / 1_000);
    const facts = { aud: order.agent, tenant: 'bench', class: 'realtime', model: order.model, suite: 5 };
    const bound = { enc: digest(setup.enc), att: digest(attestation), jti: crypto.randomUUID() };
    const until = (order.seconds + 600) * 1_000;
    return new SignJWT({ v: 1, ...facts, ...bound, iat: now, exp: now + 60, deadlineMs: until })
      .setProtectedHeader({ alg: 'ES256', kid: order.ticketKey.kid as string })
      .sign(key);
  };

  async function open(): Promise<Stream | undefined> {
    const ticket = await sign();
    const keys = await setup.keysFor(ticket);
    const seal = sealRecords(keys.request);
    const unseal = openRecords(keys.answer);
    const { promise, resolve } = Promise.withResolvers<Stream | undefined>();
    const closed = Promise.withResolvers<void>();
    const headers = { 'auricle-ticket': ticket, 'auricle-enc': enc };
    const stream: Stream = {
      say: (plaintext, final) => socket.send(seal(plaintext, final)),
      sentAt: new Float64Array(KEPT),
      clock: createWordClock(),
      closed: closed.promise,
      sent: 0,
      alive: true,
      heardSeconds: undefined,
    };
    const hear = (event: LinkEvent) => {
      if (event.type === 'ready') resolve(stream);
      if (event.type === 'refusal') fail(event.reason);
      if (event.type === 'final') stream.heardSeconds = event.durationSeconds;
      if (event.type === 'segment') counts.segments += 1;
      if (event.type === 'segment' || event.type === 'interim') {
        const shown = {
          utterance: event.index,
          wordEnds: event.words.map(({ end }) => end),
          final: event.type === 'segment',
        };
        const now = performance.now();
        for (const { kind, milliseconds } of stream.clock.shown(shown, now))
          if (measuring && kind === 'partial') words.add(milliseconds);
      }
      if (event.type !== 'interim') return;
      counts.interims += 1;
      const expected = order.expected[keyOf(event)];
      if (!expected) {
        counts.unexpected += 1;
        return;
      }
      // The window is complete with its last sample, and known not to be the last one with the next.
      const needed = event.start - expected.start + expected.step * HOP + WINDOW;
      const frame = Math.floor((needed * 1_000) / FRAME_MS + 1e-6);
      const since = stream.sentAt[frame % KEPT] as number;
      if (measuring && frame < stream.sent) latency.add(performance.now() - since - order.engineMs);
    };
    const open: LinkControl = {
      type: 'open',
      v: 1,
      task: 'stream',
      model: order.model,
      format: FORMAT,
      options: { interim: true, endpointingMs: 300 },
    };
    const socket = openRawSocket(`${order.agentUrl}/v1/stream`, headers, {
      open: () => stream.say(encodeControl(open)),
      message(data) {
        for (const { plaintext } of unseal(data)) hear(JSON.parse(plaintext.toString()));
      },
      refused: (status) => fail(`http_${status}`),
      closed(code) {
        stream.alive = false;
        if (stream.heardSeconds === undefined) fail(`closed ${code}`);
        closed.resolve();
        resolve(undefined);
      },
    });
    return promise;
  }

  const began = performance.now();
  const streams: (Stream | undefined)[] = [];
  for (let at = 0; at < order.streams; at += OPENING) {
    streams.push(...(await Promise.all(Array.from({ length: Math.min(OPENING, order.streams - at) }, open))));
  }
  const openMs = performance.now() - began;
  send({ began: true });

  const frames = Math.round(((order.warmSeconds + order.seconds) * 1_000) / FRAME_MS);
  const warmFrames = Math.round((order.warmSeconds * 1_000) / FRAME_MS);
  const start = performance.now();
  const dueAt = (turn: number) => start + (turn * FRAME_MS) / order.streams;
  await new Promise<void>((resolve) => {
    let turn = 0;
    const tick = () => {
      for (let now = performance.now(); turn < frames * order.streams && dueAt(turn) <= now; now = performance.now()) {
        const number = turn % order.streams;
        const stream = streams[number];
        const index = Math.floor(turn / order.streams);
        measuring = index >= warmFrames;
        if (stream?.alive) {
          if (measuring) late.add(now - dueAt(turn));
          const from = ((index + aheadBy(order.first + number, pass)) % pass) * FRAME_BYTES;
          stream.sentAt[index % KEPT] = now;
          stream.clock.sent(index, now);
          stream.sent += 1;
          stream.say(encodeAudio(index * FRAME_BYTES, sound.subarray(from, from + FRAME_BYTES)));
        }
        turn += 1;
      }
      if (turn === frames * order.streams) resolve();
      else setTimeout(tick, Math.max(0, dueAt(turn) - performance.now()));
    };
    tick();
  });
  for (const stream of streams) if (stream?.alive) stream.say(encodeControl({ type: 'end' }), true);
  await Promise.race([
    Promise.all(streams.map((stream) => stream?.closed)),
    new Promise((resolve) => setTimeout(resolve, CLOSE_MS_MAX)),
  ]);
  const held = streams.filter((stream) => stream !== undefined);
  const lost = held.reduce((sum, { sent, heardSeconds = 0 }) => sum + (sent * FRAME_MS) / 1_000 - heardSeconds, 0);
  const [p50, p90, p99, max] = latency.at(0.5, 0.9, 0.99, 1) as [number, number, number, number];
  const [lateP99] = late.at(0.99) as [number];
  const [wordP50, wordP99] = words.at(0.5, 0.99) as [number, number];
  return {
    opened: held.length,
    openMs,
    sent: held.reduce((sum, { sent }) => sum + sent, 0),
    ended: held.filter(({ heardSeconds }) => heardSeconds !== undefined).length,
    lostSeconds: Number(lost.toFixed(3)),
    ...counts,
    failures,
    ...{ p50, p90, p99, max, lateP99, wordP50, wordP99 },
  };
}

process.on('message', async (order: AgentLoadOrder) => send({ report: await run(order) }));
process.on('disconnect', () => process.exit(0));
