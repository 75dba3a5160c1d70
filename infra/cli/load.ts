// auricle load --audio FILE
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type Answer, wrong } from './answer.ts';
import type { Arguments } from './arguments.ts';
import { sendLoad } from './load-requests.ts';
import { type Summary, summarize } from './load-statistics.ts';

export const usage =
  'load --audio FILE [--parallel 32] [--iterations 64] [--warm-up 1] [--model NAME] [--language TAG] [--format …]';

/** Every one of `--parallel` callers makes `--warm-up` requests that do not count and then `--iterations` that do. */
export async function load(given: Arguments, headers: Record<string, string>): Promise<Answer> {
  if (given.operands.length > 0 || given.audio === undefined) return wrong(`usage: auricle ${usage}`);
  const [parallel, iterations, warmUp] = [given.parallel, given.iterations, given.warmUp].map(Number);
  for (const [name, value, least] of [
    ['parallel', parallel, 1],
    ['iterations', iterations, 1],
    ['warm-up', warmUp, 0],
  ] as const) {
    if (!Number.isSafeInteger(value) || Number(value) < least) {
      return wrong(`--${name} must be a whole number from ${least}`);
    }
  }
  let file: Blob;
  try {
    // Held in memory: the disk is not what is measured.
    file = new Blob([readFileSync(given.audio)]);
  } catch {
    return wrong(`${given.audio} cannot be read`);
  }
  const requests = {
    url: `${given.edge}/v1/audio/transcriptions`,
    headers,
    fields: {
      model: given.model,
      ...(given.language !== undefined && { language: given.language }),
      // It names the exact duration; the other forms round it up to whole seconds, or leave it out.
      response_format: given.format ?? 'verbose_json',
    },
    file,
    fileName: path.basename(given.audio),
    parallel: Number(parallel),
  };
  const warm = await sendLoad({ ...requests, iterations: Number(warmUp) });
  const { outcomes, milliseconds } = await sendLoad({ ...requests, iterations: Number(iterations) });
  const summary = summarize(outcomes, milliseconds);
  const value = { parallel, iterations, warmUp: summarize(warm.outcomes, warm.milliseconds), ...summary };
  return { exit: summary.served === summary.requests ? 0 : 1, text: render(summary, Number(parallel)), value };
}

function render(summary: Summary, parallel: number): string {
  const { requests, served, errors, wallSeconds, perSecond, latency, audioSecondsPerSecond } = summary;
  const number = (value: number, digits = 1) => value.toFixed(digits);
  const failed = Object.entries(errors).sort(([, one], [, other]) => other - one);
  return [
    `${served} of ${requests} requests served, ${parallel} at once, in ${number(wallSeconds)} s`,
    `throughput  ${number(perSecond)} requests/s, ${number(audioSecondsPerSecond)} s of audio per second`,
    ...(latency
      ? [
          `latency ms  p50 ${number(latency.p50)}  p90 ${number(latency.p90)}  p95 ${number(latency.p95)}  ` +
            `p99 ${number(latency.p99)}  max ${number(latency.max)}  mean ${number(latency.mean)}`,
        ]
      : []),
    ...(failed.length === 0 ? ['errors      none'] : failed.map(([code, count]) => `error       ${code}: ${count}`)),
  ].join('\n');
}
