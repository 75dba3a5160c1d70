// auricle load --audio FILE
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { createProgress, INTERRUPTED, noScreen, type Watched } from '../progress.ts';
import { sendLoad } from './requests.ts';
import { countProblem, describeErrors, type Summary, summarize } from './statistics.ts';
import { expectedWords } from './words.ts';

/** Every one of `--parallel` callers makes `--warm-up` requests that do not count and then `--iterations` that do. */
export async function load(
  given: Arguments,
  headers: Record<string, string>,
  { signal, screen = noScreen }: Watched = {},
): Promise<Answer> {
  if (given.audio === undefined) return wrong('missing --audio FILE');
  const [parallel, iterations, warmUp] = [Number(given.parallel), Number(given.iterations), Number(given.warmUp)];
  const problem = countProblem({ parallel: [parallel, 1], iterations: [iterations, 1], 'warm-up': [warmUp, 0] });
  if (problem !== undefined) return wrong(problem);
  const expected = expectedWords(given);
  if (given.expect !== undefined && /^(srt|vtt)$/.test(given.format ?? ''))
    return wrong('--expect compares words, which srt and vtt mix with times');
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
    ...(expected && { expected }),
    parallel,
    signal,
  };
  const progress = createProgress(screen);
  const send = async (what: string, each: number) => {
    const all = each * requests.parallel;
    const onProgress = (ended: number, failed: number) =>
      progress.show(`${what}${ended} of ${all} requests${failed > 0 ? `, ${failed} failed` : ''}`);
    const { outcomes, milliseconds } = await sendLoad({ ...requests, iterations: each, onProgress });
    progress.clear();
    return summarize(outcomes, milliseconds);
  };
  const warm = await send('warm-up: ', warmUp);
  if (warm.served === 0 && warm.requests > 0 && !signal?.aborted) return failedWarmUp(warm);
  const summary = await send('', iterations);
  const interrupted = signal?.aborted ?? false;
  const value = { parallel, iterations, warmUp: warm, ...summary, ...(interrupted && { interrupted }) };
  const exit = summary.served === summary.requests ? 0 : 1;
  const text = render(summary, parallel);
  return { exit: interrupted ? INTERRUPTED : exit, text: interrupted ? `interrupted: ${text}` : text, value };
}

/** Returns the answer when the warm-up has no served request. */
function failedWarmUp(warmUp: Summary): Answer {
  const sentence = `none of the ${warmUp.requests} requests of the warm-up was served, so nothing was measured`;
  const text = [sentence, ...describeErrors(warmUp)].join('\n');
  return { exit: 1, text, value: { error: { message: sentence }, warmUp } };
}

function render(summary: Summary, parallel: number): string {
  const { requests, served, wallSeconds, perSecond, latency, audioSecondsPerSecond } = summary;
  const number = (value: number, digits = 1) => value.toFixed(digits);
  const failed = describeErrors(summary);
  return [
    `${served} of ${requests} requests served, ${parallel} at once, in ${number(wallSeconds)} s`,
    `throughput  ${number(perSecond)} requests/s, ${number(audioSecondsPerSecond)} s of audio per second`,
    ...(latency
      ? [
          `latency ms  p50 ${number(latency.p50)}  p90 ${number(latency.p90)}  p95 ${number(latency.p95)}  ` +
            `p99 ${number(latency.p99)}  max ${number(latency.max)}  mean ${number(latency.mean)}`,
        ]
      : []),
    ...(failed.length === 0 ? ['errors      none'] : failed),
  ].join('\n');
}
