// Sends the same request again and again, so many at a time.
import { z } from 'zod';
import { jsonOf } from '../../../shared/json-text.ts';
import { withRequest } from '../answer.ts';
import type { Outcome } from './statistics.ts';
import { WORDS_DIFFER, wordProblem, wordsOf } from './words.ts';

export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Multipart fields before the file. */
  readonly fields: Readonly<Record<string, string>>;
  readonly file: Blob;
  readonly fileName: string;
  /** Words that each answer must hold, where they are known. */
  readonly expected?: readonly string[];
  /** Requests at once, and how many each of these callers makes one after the other. */
  readonly parallel: number;
  readonly iterations: number;
  /** Ends it early: what is under way then counts nowhere. */
  readonly signal?: AbortSignal | undefined;
  /** Hears how many requests have ended, and how many of them failed. */
  readonly onProgress?: ((ended: number, failed: number) => void) | undefined;
}

const answered = z.object({ duration: z.number() }).or(z.object({ usage: z.object({ seconds: z.number() }) }));
const spoken = z.object({ text: z.string() });
const refused = z.object({ error: z.object({ code: z.string(), message: z.string().optional() }) });

/** The outcome of every request, and how long all of them took, in milliseconds. Never rejects. */
export async function sendLoad(load: Load): Promise<{ outcomes: Outcome[]; milliseconds: number }> {
  const outcomes: Outcome[] = [];
  const began = performance.now();
  let failed = 0;
  // One for each request: what listens to the run's own signal would pile up there.
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
      const said = refused.safeParse(body).data?.error;
      const request = response.headers.get('x-request-id') ?? undefined;
      const words = said?.message ?? `${url} answers ${response.status} ${response.statusText}`.trimEnd();
      const message = withRequest(words, request);
      return { milliseconds, code: said?.code ?? `http_${response.status}`, message, audioSeconds: 0 };
    }
    const said = answered.safeParse(body).data;
    const audioSeconds = said === undefined ? 0 : 'duration' in said ? said.duration : said.usage.seconds;
    const heard = spoken.safeParse(body).data?.text ?? (fields.response_format === 'text' ? text : undefined);
    const other = expected && heard !== undefined ? wordProblem(wordsOf(heard), expected) : undefined;
    if (other !== undefined) return { milliseconds, code: WORDS_DIFFER, message: other, audioSeconds: 0 };
    return { milliseconds, code: undefined, audioSeconds };
  } catch (error) {
    return { milliseconds: since(), ...networkError(url, error), audioSeconds: 0 };
  }
}

function networkError(url: string, error: unknown): Pick<Outcome, 'code' | 'message'> {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'network';
  // Several addresses that were tried in vain have no message of their own.
  const why = (cause instanceof Error && cause.message) || code;
  return { code, message: `${url} cannot be reached: ${code === 'ECONNREFUSED' ? 'connection refused' : why}` };
}
