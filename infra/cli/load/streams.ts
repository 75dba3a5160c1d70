// Many concurrent live streams of one repeated recording, and the latency of their words.
import { setTimeout as sleep } from 'node:timers/promises';
import { wordsOf } from '../../../shared/registry/compare-answers.ts';
import { createFrames, FRAME_SECONDS, type LiveAudio, passSeconds, toRate } from '../live/audio.ts';
import { createWordClock, type Measured } from '../live/latency.ts';
import type { LiveStream, LiveTarget, LiveUpdate } from '../live/live.ts';
import { openLive, rateFor } from '../live/open.ts';
import { WORDS_DIFFER, wordProblem } from './words.ts';

/** Concurrent handshakes of the load client: it must not look like an attack. */
const LIVE_OPENING_MAX = 25;

export interface StreamLoad {
  readonly target: Omit<LiveTarget, 'rate' | 'onNews'>;
  readonly audio: LiveAudio;
  /** Words of one pass, if known. */
  readonly expected?: readonly string[] | undefined;
  readonly parallel: number;
  /** Measured audio of each stream, and unmeasured passes over the recording before it. */
  readonly seconds: number;
  readonly warmUp: number;
  /** Microphone pace, or as fast as the connection accepts. */
  readonly pace: 'realtime' | 'max';
  /** Ends the run early, with the results so far. */
  readonly signal?: AbortSignal | undefined;
}

export interface StreamOutcome {
  /** Reason of a failed opening or an abnormal end. */
  readonly code: string | undefined;
  /** Message for people. */
  readonly message?: string | undefined;
  readonly opened: boolean;
  readonly measured: readonly Measured[];
  /** Words of the final text, without those of the warm-up. */
  readonly words: number;
  /** Code → count, of events without loss. */
  readonly notices: Readonly<Record<string, number>>;
  /** Milliseconds from the last frame to the last word. */
  readonly finishMilliseconds: number | undefined;
  /** Seconds of audio sent, and bytes sent and received, after the warm-up. */
  readonly audioSeconds: number;
  readonly bytes: ReturnType<LiveStream['bytes']>;
  /** End of the warm-up, ms of `performance.now`; absent when it never ended. */
  readonly warmAt?: number | undefined;
}

/**
 * Returns the outcome of every stream, and the ms from the end of the first warm-up to the last word. Never
 * rejects.
 */
export async function loadStreams(load: StreamLoad): Promise<{ outcomes: StreamOutcome[]; milliseconds: number }> {
  const audio = toRate(load.audio, rateFor(load.audio));
  const frameAt = createFrames(audio);
  const warmSeconds = load.warmUp * passSeconds(audio);
  const frames = Math.ceil((warmSeconds + load.seconds) / FRAME_SECONDS);
  const streams: Prepared[] = [];
  for (let at = 0; at < load.parallel && !load.signal?.aborted; at += LIVE_OPENING_MAX) {
    const some = Array.from({ length: Math.min(LIVE_OPENING_MAX, load.parallel - at) }, () =>
      prepare(load, audio.rate),
    );
    streams.push(...(await Promise.all(some)));
  }
  const began = performance.now();
  const outcomes = streams.map(async (stream, at) => {
    // Starts are spread over one frame, as independent clients' clocks are.
    const start = began + (load.pace === 'realtime' ? (at / load.parallel) * FRAME_SECONDS * 1_000 : 0);
    const { pace, signal, expected } = load;
    return play(stream, { frameAt, frames, start, warmSeconds, pass: passSeconds(audio), expected, pace, signal });
  });
  const ended = await Promise.all(outcomes);
  const over = performance.now();
  return { outcomes: ended, milliseconds: over - Math.min(over, ...ended.map(({ warmAt = over }) => warmAt)) };
}

interface Prepared {
  readonly opened: LiveStream | { readonly code: string; readonly message?: string };
  readonly clock: ReturnType<typeof createWordClock>;
  readonly measured: Measured[];
  /** Words of each final text, and the end of the last word if the protocol reports it. */
  readonly spoken: { readonly words: readonly string[]; readonly end: number | undefined }[];
  readonly notices: Record<string, number>;
}

async function prepare({ target }: StreamLoad, rate: number): Promise<Prepared> {
  const clock = createWordClock();
  const measured: Measured[] = [];
  const spoken: Prepared['spoken'] = [];
  const notices: Record<string, number> = {};
  const onNews = (news: LiveUpdate, now: number) => {
    if (news.type === 'words') {
      measured.push(...clock.shown(news, now));
      if (news.final) spoken.push({ words: wordsOf(news.text), end: news.wordEnds.at(-1) });
      return;
    }
    notices[news.code] = (notices[news.code] ?? 0) + 1;
  };
  return { opened: await openLive({ ...target, rate, onNews }), clock, measured, spoken, notices };
}

interface Play {
  readonly frameAt: (index: number) => Uint8Array;
  readonly frames: number;
  /** Due time of the first frame, ms of `performance.now`. */
  readonly start: number;
  readonly warmSeconds: number;
  /** Seconds of one pass over the recording. */
  readonly pass: number;
  readonly expected: readonly string[] | undefined;
  readonly pace: StreamLoad['pace'];
  readonly signal: AbortSignal | undefined;
}

const NO_BYTES = { sent: 0, received: 0 };

async function play(prepared: Prepared, plan: Play): Promise<StreamOutcome> {
  const { opened, clock, measured, spoken, notices } = prepared;
  const none = {
    measured: [],
    words: 0,
    notices,
    finishMilliseconds: undefined,
    audioSeconds: 0,
    bytes: NO_BYTES,
  };
  if ('code' in opened) return { code: opened.code, message: opened.message, opened: false, ...none };
  let lost = false;
  void opened.lost.then(() => {
    lost = true;
  });
  let index = 0;
  let warm: { readonly at: number; readonly bytes: StreamOutcome['bytes'] } | undefined;
  for (; index < plan.frames && !lost && !plan.signal?.aborted; index += 1) {
    // A frame is due when its last sample was spoken; the schedule never shifts, however late the client is.
    const due = plan.start + (index + 1) * FRAME_SECONDS * 1_000 - performance.now();
    if (plan.pace === 'realtime' && due > 0) await sleep(due);
    if (index * FRAME_SECONDS >= plan.warmSeconds) warm ??= { at: performance.now(), bytes: opened.bytes() };
    clock.sent(index, performance.now());
    await opened.send(plan.frameAt(index));
  }
  const sent = performance.now();
  const finished = await opened.finish();
  const { code, message } = finished.code === undefined ? judge(spoken, index, plan) : finished;
  const bytes = opened.bytes();
  return {
    code,
    message,
    opened: true,
    measured: measured.filter(({ at }) => at > plan.warmSeconds),
    words: spoken.reduce((sum, { words, end = Infinity }) => sum + (end > plan.warmSeconds ? words.length : 0), 0),
    notices,
    finishMilliseconds: finished.code === undefined ? performance.now() - sent : undefined,
    audioSeconds: Math.max(0, index * FRAME_SECONDS - plan.warmSeconds),
    bytes: warm ? { sent: bytes.sent - warm.bytes.sent, received: bytes.received - warm.bytes.received } : NO_BYTES,
    warmAt: warm?.at,
  };
}

/** Requires the words of every completely sent pass. */
function judge(
  spoken: Prepared['spoken'],
  frames: number,
  { expected, pass }: Play,
): Pick<StreamOutcome, 'code' | 'message'> {
  const count = Math.floor((frames * FRAME_SECONDS) / pass + 1e-6);
  const received = spoken.flatMap(({ words }) => words);
  const message = expected && wordProblem(received, expected, { count, tail: expected.length });
  return message === undefined ? { code: undefined } : { code: WORDS_DIFFER, message };
}
