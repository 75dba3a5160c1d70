// Follows an upload to its end, by its events, through drops of the connection.

import { z } from 'zod';

/** Connections in a row without news before the CLI stops following. */
const FOLLOW_SILENCES_MAX = 20;

/** Members of an upload and of a project that say what is still to come. */
export const pendingShape = {
  waiting: z.object({ for: z.string(), since: z.string() }).optional(),
  callback: z.string().optional(),
  callback_attempts: z.number().optional(),
};
type Pending = z.infer<z.ZodObject<typeof pendingShape>>;

/** Returns what a line says of them, empty where nothing is to come. */
export function pendingWords({ waiting, callback, callback_attempts: tries = 0 }: Pending): string {
  const wait = waiting ? `, waiting for ${waiting.for} since ${waiting.since}` : '';
  const notified = (callback === 'pending' && tries > 0) || callback === 'failed';
  return notified ? `${wait}, callback ${callback} after ${tries} attempts` : wait;
}

/** Members of an upload that the command line reads. */
export const uploadState = z.looseObject({
  id: z.string(),
  status: z.string(),
  seq: z.number(),
  pieces: z.object({ total: z.number(), done: z.number() }),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  ...pendingShape,
});
export type UploadState = z.infer<typeof uploadState>;

export interface Following<T> {
  readonly fetch: typeof fetch;
  readonly pause: (attempt: number) => Promise<void>;
  /** Receives each state before the end, which is the result. */
  readonly changed: (now: T) => void;
}

/** Returns a printer that drops a line equal to the one before: not every change of a job shows in its line. */
export function printChanges(print: (line: string) => void): (line: string) => void {
  let last: string | undefined;
  return (line) => {
    if (line !== last) print(line);
    last = line;
  };
}

/** Returns the ended upload, or the refusal. */
export const followUpload = (
  url: string,
  headers: Record<string, string>,
  following: Following<UploadState>,
): Promise<UploadState | Response> => follow(url, headers, following, uploadState);

/** Follows any job with the events of an upload. */
export async function follow<T>(
  url: string,
  headers: Record<string, string>,
  { fetch: send, pause, changed }: Following<T>,
  schema: z.ZodType<T>,
): Promise<T | Response> {
  let last: string | undefined;
  for (let silent = 0; silent < FOLLOW_SILENCES_MAX; silent += 1) {
    if (silent > 0) await pause(silent);
    try {
      const response = await send(`${url}/events`, {
        headers: { ...headers, ...(last !== undefined && { 'last-event-id': last }) },
      });
      if (response.status >= 400 && response.status < 500 && response.status !== 429) return response;
      if (!response.ok || !response.body) continue;
      for await (const event of readEvents(response.body)) {
        const { data } = schema.safeParse(JSON.parse(event.data));
        if (!data) continue;
        silent = 0;
        last = event.id ?? last;
        if (event.name === 'end') return data;
        changed(data);
      }
    } catch {
      // The connection broke. The next one begins with the current state.
    }
  }
  throw new Error('the edge sends no more events', { cause: new Error('no events') });
}

interface ServerEvent {
  readonly name: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** Server-sent events (WHATWG HTML §9.2), as our edge writes them: one line of data each. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const frame = text.slice(0, end);
      text = text.slice(end + 2);
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1];
      const data = field('data');
      if (data !== undefined) yield { name: field('event') ?? 'message', id: field('id'), data };
    }
  }
}
