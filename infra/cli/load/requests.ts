// Sends one request repeatedly from several concurrent callers.
import { z } from 'zod';
import { jsonOf } from '../../../shared/json-text.ts';
import { wordsOf } from '../../../shared/registry/compare-answers.ts';
import { withRequest } from '../answer.ts';
import type { Outcome } from './statistics.ts';
import { WORDS_DIFFER, wordProblem } from './words.ts';

export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Multipart fields before the file. */
  readonly fields: Readonly<Record<string, string>>;
  readonly file: Blob;
  readonly fileName: string;
  /** Words that each answer must contain, if known. */
  readonly expected?: readonly string[];
  /** Concurrent callers, and requests that each makes in sequence. */
  readonly parallel: number;
  readonly iterations: number;
  /** Ends the run early; requests in flight are not counted. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the number of ended requests, and of failed ones among them. */
  readonly onProgress?: ((ended: number, failed: number) => void) | undefined;
}

const answered = z.object({ duration: z.number() }).or(z.object({ usage: z.object({ seconds: z.number() }) }));
const spoken = z.object({ text: z.string() });
const refused = z.object({ error: z.object({ code: z.string(), message: z.string().optional() }) });

/** Returns the outcome of every request, and the total time in milliseconds. Never rejects. */
export async function sendLoad(load: Load): Promise<{ outcomes: Outcome[]; milliseconds: number }> {
  const outcomes: Outcome[] = [];
  const began = performance.now();
  let failed = 0;
  // One controller for each request: listeners would accumulate on the run's own signal.
  const underWay = new Set<AbortController>();
  load.signal?.addEventListener('abort', () => {
    for (const one of underWay) one.abort();
  });
  const caller = async () => {
    for (let made = 0; made < load.iterations && !load.signal?.aborted; made += 1) {
      const abort = new AbortController();
      underWay.add(abort);
      const outcome = await sendOne(load, abort.signal);
      underWay.delete(abort);
      if (load.signal?.aborted) return;
      outcomes.push(outcome);
      if (outcome.code !== undefined) failed += 1;
      load.onProgress?.(outcomes.length, failed);
    }
  };
  await Promise.all(Array.from({ length: load.parallel }, caller));
  return { outcomes, milliseconds: performance.now() - began };
}

async function sendOne(
  { url, headers, fields, file, fileName, expected }: Load,
  signal: AbortSignal,
): Promise<Outcome> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', file, fileName);
  const began = performance.now();
  const since = () => performance.now() - began;
  try {
    const response = await fetch(url, { method: 'POST', headers, body: form, signal });
    const text = await response.text();
    const milliseconds = since();
    const body = jsonOf(text);
    if (!response.ok) {
      const apiError = refused.safeParse(body).data?.error;
      const request = response.headers.get('x-request-id') ?? undefined;
      const words = apiError?.message ?? `${url} answers ${response.status} ${response.statusText}`.trimEnd();
      const message = withRequest(words, request);
      return { milliseconds, code: apiError?.code ?? `http_${response.status}`, message, audioSeconds: 0 };
    }
    const answer = answered.safeParse(body).data;
    const audioSeconds = answer === undefined ? 0 : 'duration' in answer ? answer.duration : answer.usage.seconds;
    const transcript = spoken.safeParse(body).data?.text ?? (fields.response_format === 'text' ? text : undefined);
    const other = expected && transcript !== undefined ? wordProblem(wordsOf(transcript), expected) : undefined;
    if (other !== undefined) return { milliseconds, code: WORDS_DIFFER, message: other, audioSeconds: 0 };
    return { milliseconds, code: undefined, audioSeconds };
  } catch (error) {
    return { milliseconds: since(), ...networkError(url, error), audioSeconds: 0 };
  }
}

function networkError(url: string, error: unknown): Pick<Outcome, 'code' | 'message'> {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'network';
  // An AggregateError of several failed addresses has no message of its own.
  const why = (cause instanceof Error && cause.message) || code;
  return { code, message: `${url} cannot be reached: ${code === 'ECONNREFUSED' ? 'connection refused' : why}` };
}
