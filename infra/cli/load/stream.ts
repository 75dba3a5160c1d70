// auricle load --stream --audio FILE
import { readFileSync } from 'node:fs';
import { type Answer, wrong } from '../answer.ts';
import { readLiveAudio } from '../live/audio.ts';
import type { Arguments } from '../options.ts';
import { createProgress, INTERRUPTED, noScreen, type Watched } from '../progress.ts';
import { countErrors, countProblem, describeErrors, type ErrorCounts, type Latency, latencyOf } from './statistics.ts';
import { loadStreams, type StreamLoad, type StreamOutcome } from './streams.ts';
import { expectedWords } from './words.ts';

const paces: readonly string[] = ['realtime', 'max'] satisfies StreamLoad['pace'][];

/** Plays the recording to `--parallel` streams: `--warm-up` passes that do not count, then `--seconds` that do. */
export async function loadStream(
  given: Arguments,
  token: string,
  { signal, screen = noScreen }: Watched = {},
): Promise<Answer> {
  const plan = readPlan(given);
  if ('problem' in plan) return wrong(plan.problem);
  const { edge, model, language } = given;
  const progress = createProgress(screen);
  const began = performance.now();
  const tick = setInterval(() => {
    progress.show(`${plan.parallel} streams: ${Math.round((performance.now() - began) / 1_000)} s`);
  }, 1_000);
  const target = { edge, token, model, language };
  const { outcomes, milliseconds } = await loadStreams({ ...plan, target, signal }).finally(() => clearInterval(tick));
  progress.clear();
  const { audio: _, expected: __, ...options } = plan;
  const value = { ...options, ...summarizeStreams(outcomes, milliseconds) };
  const good = value.ended === plan.parallel;
  const text = render(value, plan.parallel);
  if (signal?.aborted)
    return { exit: INTERRUPTED, text: `interrupted: ${text}`, value: { ...value, interrupted: true } };
  return { exit: good ? 0 : 1, text, value };
}

type Plan = Omit<StreamLoad, 'target'>;

function readPlan(given: Arguments): Plan | { problem: string } {
  if (given.audio === undefined) return { problem: 'missing --audio FILE.wav' };
  const [parallel, seconds, warmUp] = [Number(given.parallel), Number(given.seconds), Number(given.warmUp)];
  const problem = countProblem({ parallel: [parallel, 1], seconds: [seconds, 1], 'warm-up': [warmUp, 0] });
  if (problem !== undefined) return { problem };
  if (!paces.includes(given.pace)) return { problem: `--pace ${given.pace}: use realtime or max` };
  let file: Uint8Array;
  try {
    file = readFileSync(given.audio);
  } catch {
    return { problem: `${given.audio} cannot be read` };
  }
  const read = readLiveAudio(file);
  if ('problem' in read) return { problem: `${given.audio} ${read.problem}` };
  const pace = given.pace as StreamLoad['pace'];
  return {
    audio: read.audio,
    expected: expectedWords(given),
    parallel,
    seconds,
    warmUp,
    pace,
  };
}

export interface StreamSummary extends ErrorCounts {
  /** Streams that opened, and those of them that ended as they should. */
  readonly opened: number;
  readonly ended: number;
  /** Code → how often: another agent or connection went on, and nothing was lost. */
  readonly notices: Readonly<Record<string, number>>;
  /** From the end of the first warm-up to the last word. */
  readonly wallSeconds: number;
  /** Sent on all streams after the warm-up, as all figures below. */
  readonly audioSeconds: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Words of the final texts; how long words and utterances took (`live/latency.ts`) in milliseconds, absent when nothing was measured. */
  readonly words: number;
  readonly partialLatency: Latency | undefined;
  readonly finalLatency: Latency | undefined;
  /** From the last frame of a stream to its last word. */
  readonly finishLatency: Latency | undefined;
}

/** Pure: what the streams add up to. */
function summarizeStreams(outcomes: readonly StreamOutcome[], milliseconds: number): StreamSummary {
  const sum = (take: (outcome: StreamOutcome) => number) => outcomes.reduce((total, one) => total + take(one), 0);
  const notices: Record<string, number> = {};
  for (const [code, count] of outcomes.flatMap((one) => Object.entries(one.notices)))
    notices[code] = (notices[code] ?? 0) + count;
  const measured = outcomes.flatMap((outcome) => outcome.measured);
  const times = (kind: 'partial' | 'final') =>
    measured.filter((one) => one.kind === kind).map((one) => one.milliseconds);
  return {
    opened: outcomes.filter(({ opened }) => opened).length,
    ended: outcomes.filter(({ code }) => code === undefined).length,
    ...countErrors(outcomes),
    notices,
    wallSeconds: milliseconds / 1_000,
    audioSeconds: sum(({ audioSeconds }) => audioSeconds),
    bytesSent: sum(({ bytes }) => bytes.sent),
    bytesReceived: sum(({ bytes }) => bytes.received),
    words: sum(({ words }) => words),
    partialLatency: latencyOf(times('partial')),
    finalLatency: latencyOf(times('final')),
    finishLatency: latencyOf(outcomes.flatMap(({ finishMilliseconds }) => finishMilliseconds ?? [])),
  };
}

function render(summary: StreamSummary, parallel: number): string {
  const number = (value: number) => value.toFixed(1);
  const row = (name: string, latency: Latency | undefined) =>
    latency
      ? `${name.padEnd(11)} p50 ${number(latency.p50)}  p90 ${number(latency.p90)}  p99 ${number(latency.p99)}  max ${number(latency.max)}`
      : `${name.padEnd(11)} none measured`;
  const { opened, ended, wallSeconds, audioSeconds, bytesSent, bytesReceived, words } = summary;
  return [
    `${ended} of ${parallel} streams ended well, ${opened} opened, in ${number(wallSeconds)} s`,
    `${number(audioSeconds)} s of audio, ${bytesSent} bytes sent, ${bytesReceived} received, ${words} words`,
    row('partial ms', summary.partialLatency),
    row('final ms', summary.finalLatency),
    row('finish ms', summary.finishLatency),
    ...describeErrors(summary),
    ...Object.entries(summary.notices).map(([code, count]) => `notice      ${code}: ${count}`),
  ].join('\n');
}
