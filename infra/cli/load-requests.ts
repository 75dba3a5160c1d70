// Sends the same request again and again, so many at a time.
import { z } from 'zod';
import { jsonOf } from '../../shared/json-text.ts';
import type { Outcome } from './load-statistics.ts';

export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Multipart fields before the file. */
  readonly fields: Readonly<Record<string, string>>;
  readonly file: Blob;
  readonly fileName: string;
  /** Requests at once, and how many each of these callers makes one after the other. */
  readonly parallel: number;
  readonly iterations: number;
}

const answered = z.object({ duration: z.number() }).or(z.object({ usage: z.object({ seconds: z.number() }) }));
const refused = z.object({ error: z.object({ code: z.string() }) });

/** The outcome of every request, and how long all of them took, in milliseconds. Never rejects. */
export async function sendLoad(load: Load): Promise<{ outcomes: Outcome[]; milliseconds: number }> {
  const outcomes: Outcome[] = [];
  const began = performance.now();
  const caller = async () => {
    for (let made = 0; made < load.iterations; made += 1) outcomes.push(await sendOne(load));
  };
  await Promise.all(Array.from({ length: load.parallel }, caller));
  return { outcomes, milliseconds: performance.now() - began };
}

async function sendOne({ url, headers, fields, file, fileName }: Load): Promise<Outcome> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', file, fileName);
  const began = performance.now();
  const since = () => performance.now() - began;
  try {
    const response = await fetch(url, { method: 'POST', headers, body: form });
    const text = await response.text();
    const milliseconds = since();
    const body = jsonOf(text);
    if (!response.ok) {
      const code = refused.safeParse(body).data?.error.code ?? `http_${response.status}`;
      return { milliseconds, code, audioSeconds: 0 };
    }
    const said = answered.safeParse(body).data;
    const audioSeconds = said === undefined ? 0 : 'duration' in said ? said.duration : said.usage.seconds;
    return { milliseconds, code: undefined, audioSeconds };
  } catch (error) {
    return { milliseconds: since(), code: networkCode(error), audioSeconds: 0 };
  }
}

function networkCode(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'network';
}
