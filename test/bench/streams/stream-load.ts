// The load client, a process of its own: so many streams, each a frame every tenth of a second on a schedule that is
// never stretched, and the time from a frame to what it was answered with.
import process from 'node:process';
import { type ClientOptions, WebSocket } from 'ws';
import { createWordClock, type WordClock } from '../../../infra/cli/live/latency.ts';
import { Samples } from './samples.ts';
import { aheadBy, FRAME_BYTES, FRAME_MS, frameOf, markFrame } from './traffic.ts';

export interface LoadOrder {
  /** `{stream}` becomes the number of the stream. */
  readonly url: string;
  /** Headers of the streams in turn, such as those of several tenants. */
  readonly headers: readonly Readonly<Record<string, string>>[];
  readonly streams: number;
  /** Measured time, after `warmSeconds` that count for frames but not for latency. */
  readonly seconds: number;
  readonly warmSeconds: number;
  /** First message of a stream, the message that ends it, and the one that tells that it has begun, if any. */
  readonly begin?: string;
  readonly end: string;
  readonly begun?: string;
  /** Bytes before the sound of each frame: its position, most significant first. */
  readonly positionBytes: number;
  /** The type of the event that ends a stream well; without one the closing code does. */
  readonly final?: string;
  /**
   * One pass of speech, base64 of 16-bit samples in whole frames, for streams that a real agent answers: latency then is
   * from the end of a word to the first event with it. Absent: marked frames for a double.
   */
  readonly sound?: string;
}

export interface LoadReport {
  readonly opened: number;
  readonly openMs: number;
  readonly sent: number;
  readonly answers: number;
  /** Streams that ended as they should. */
  readonly ended: number;
  /** Close code or error → how many streams. */
  readonly failures: Readonly<Record<string, number>>;
  /** Seconds of audio sent less those that final events report, of streams that ended well. */
  readonly lostSeconds: number;
  /** Milliseconds from a frame that was sent to the event that answers it. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
  /** Lateness of frames leaving this process, ms; when it is large, the load itself was the bottleneck. */
  readonly lateP99: number;
}

export type LoadMessage = { readonly began: true } | { readonly report: LoadReport };

interface Event {
  readonly type: string;
  readonly end?: number;
  readonly index?: number;
  readonly words?: readonly { readonly end: number }[];
  readonly durationSeconds?: number;
}

/** Maximum of concurrent handshakes. */
const OPENING = 25;
/** Answers of a second are far apart from those a stream may still wait for. */
const KEPT = 256;
const OPEN_MS_MAX = 30_000;
const CLOSE_MS_MAX = 30_000;

interface Stream {
  readonly socket: WebSocket;
  /** Send times of the last frames, by their number. */
  readonly sentAt: Float64Array;
  readonly clock: WordClock;
  sent: number;
  alive: boolean;
  ended: boolean;
  /** Duration that the final event reports. */
  seconds: number;
  readonly closed: Promise<void>;
}

async function run(order: LoadOrder): Promise<LoadReport> {
  const latency = new Samples();
  const late = new Samples();
  const failures: Record<string, number> = {};
  let measuring = false;
  let answers = 0;

  const time = ({ clock }: Stream, { type, index: utterance = 0, words = [] }: Event) => {
    const shown = { utterance, wordEnds: words.map(({ end }) => end), final: type === 'segment' };
    for (const { kind, milliseconds } of clock.shown(shown, performance.now())) {
      if (measuring && kind === 'partial') latency.add(milliseconds);
    }
  };

  const open = (index: number) =>
    new Promise<Stream | undefined>((resolve) => {
      const options: ClientOptions = {
        headers: { ...order.headers[index % order.headers.length] },
        perMessageDeflate: false,
        handshakeTimeout: OPEN_MS_MAX,
      };
      const socket = new WebSocket(order.url.replace('{stream}', String(index)), options);
      const closed = Promise.withResolvers<void>();
      const sentAt = new Float64Array(KEPT);
      const stream: Stream = {
        ...{ socket, sentAt, clock: createWordClock(), closed: closed.promise },
        ...{ sent: 0, alive: true, ended: false, seconds: 0 },
      };
      let ending = false;
      const fail = (why: string) => {
        failures[why] = (failures[why] ?? 0) + 1;
      };
      socket.on('open', () => {
        if (order.begin) socket.send(order.begin);
        if (!order.begun) resolve(stream);
      });
      socket.on('message', (data) => {
        const event = JSON.parse(String(data)) as Event;
        if (event.type === order.begun) return resolve(stream);
        if (event.type === order.final) {
          ending = true;
          stream.seconds = event.durationSeconds ?? 0;
        }
        if (event.end === undefined || (event.type !== 'interim' && event.type !== 'segment')) return;
        answers += 1;
        if (order.sound !== undefined) return time(stream, event);
        if (measuring) latency.add(performance.now() - (sentAt[frameOf(event.end) % KEPT] as number));
      });
      socket.on('error', (error) => fail((error as NodeJS.ErrnoException).code ?? error.message));
      socket.on('close', (code, reason) => {
        stream.alive = false;
        stream.ended = code === 1000 && (ending || order.final === undefined);
        if (!stream.ended) fail(`closed ${code} ${reason}`);
        closed.resolve();
        resolve(undefined);
      });
    });

  const began = performance.now();
  const streams: (Stream | undefined)[] = [];
  for (let at = 0; at < order.streams; at += OPENING) {
    const some = Array.from({ length: Math.min(OPENING, order.streams - at) }, (_, more) => open(at + more));
    streams.push(...(await Promise.all(some)));
  }
  const openMs = performance.now() - began;
  process.send?.({ began: true } satisfies LoadMessage);

  const frames = Math.round(((order.warmSeconds + order.seconds) * 1_000) / FRAME_MS);
  const warmFrames = Math.round((order.warmSeconds * 1_000) / FRAME_MS);
  const frame = Buffer.alloc(order.positionBytes + FRAME_BYTES, 7);
  const sound = frame.subarray(order.positionBytes);
  const speech = order.sound === undefined ? undefined : Buffer.from(order.sound, 'base64');
  const pass = (speech?.length ?? 0) / FRAME_BYTES;
  const start = performance.now();
  const dueAt = (turn: number) => start + (turn * FRAME_MS) / order.streams;
  let turn = 0;
  await new Promise<void>((resolve) => {
    const tick = () => {
      for (let now = performance.now(); turn < frames * order.streams && dueAt(turn) <= now; now = performance.now()) {
        const stream = streams[turn % order.streams];
        const index = Math.floor(turn / order.streams);
        measuring = index >= warmFrames;
        if (stream?.alive) {
          if (measuring) late.add(now - dueAt(turn));
          if (order.positionBytes > 0) frame.writeUIntBE(index * FRAME_BYTES, 0, order.positionBytes);
          if (speech) {
            const from = ((index + aheadBy(turn % order.streams, pass)) % pass) * FRAME_BYTES;
            speech.copy(sound, 0, from, from + FRAME_BYTES);
          } else markFrame(sound, turn % order.streams, index);
          stream.sentAt[(index + 1) % KEPT] = now;
          stream.clock.sent(index, now);
          stream.sent += 1;
          stream.socket.send(frame);
        }
        turn += 1;
      }
      if (turn === frames * order.streams) resolve();
      else setTimeout(tick, Math.max(0, dueAt(turn) - performance.now()));
    };
    tick();
  });

  for (const stream of streams) if (stream?.alive) stream.socket.send(order.end);
  const all = Promise.all(streams.map((stream) => stream?.closed));
  const patience = setTimeout(() => {
    for (const stream of streams) stream?.socket.terminate();
  }, CLOSE_MS_MAX);
  await all;
  clearTimeout(patience);
  const held = streams.filter((stream) => stream !== undefined);
  const well = held.filter(({ ended }) => ended);
  const lostSeconds = well.reduce((sum, { sent, seconds }) => sum + (sent * FRAME_MS) / 1_000 - seconds, 0);
  const [p50, p90, p99, max] = latency.at(0.5, 0.9, 0.99, 1) as [number, number, number, number];
  const [lateP99] = late.at(0.99) as [number];
  return {
    opened: held.length,
    openMs,
    sent: held.reduce((sum, { sent }) => sum + sent, 0),
    answers,
    ended: well.length,
    lostSeconds: order.sound === undefined ? 0 : Number(lostSeconds.toFixed(3)),
    failures,
    ...{ p50, p90, p99, max, lateP99 },
  };
}

process.on('message', async (order: LoadOrder) => {
  process.send?.({ report: await run(order) } satisfies LoadMessage);
});
process.on('disconnect', () => process.exit(0));
