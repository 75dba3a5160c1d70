// One call of each kind, with its outcome for the caller.
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { clipBytes, clipLike } from '../../../stack/clips.ts';
import type { Official } from '../../streams/official.ts';
import { part, story } from '../../streams/sound.ts';

/** Result of a call. `wrong`: a normal answer with other words than those of an undisturbed stack. */
export type Result = 'served' | 'refused' | 'lost' | 'wrong';

export interface Outcome {
  readonly result: Result;
  readonly reason: string;
  /** Time of the answer, or of the open socket, ms since 1970. */
  readonly answeredAt: number;
  /** Latency for the caller, ms; for a stream beyond the duration of its audio. */
  readonly waitedMs: number;
}

/** Words of an undisturbed stack. */
export interface Expected {
  readonly recording: string;
  readonly deepgram: unknown;
  readonly openai: unknown;
}

export interface Caller {
  readonly url: string;
  readonly token: string;
}

/** Seconds of audio a message: streams send at the pace of speech. */
const STEP_S = 0.5;
const SAMPLE_BYTES_PER_S = 32_000;
const storySeconds = story.bytes.length / SAMPLE_BYTES_PER_S;
export const recorded = clipLike('.wav');

const messageOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return [message, (cause as Error | undefined)?.message].filter(Boolean).join(': ');
};

export interface Answer {
  readonly status: number;
  readonly text: string;
  /** Code of the refusal, if it is one. */
  readonly code: string;
}

export async function request(caller: Caller, place: string, init: RequestInit = {}): Promise<Answer> {
  const headers = { authorization: `Bearer ${caller.token}`, ...init.headers };
  const answer = await fetch(place.startsWith('http') ? place : `${caller.url}${place}`, { ...init, headers });
  const text = await answer.text();
  const code = answer.ok ? '' : `${answer.status} ${/"code": ?"(\w+)"/.exec(text)?.[1] ?? 'without a code'}`;
  return { status: answer.status, text, code };
}

/** Outcome of a request: a normal answer that `isExpected` does not hold for is wrong. */
export async function outcomeOf(call: Promise<Answer>, isExpected: (text: string) => boolean): Promise<Outcome> {
  const startedAt = Date.now();
  const say = (result: Result, reason = ''): Outcome => {
    const answeredAt = Date.now();
    return { result, reason, answeredAt, waitedMs: answeredAt - startedAt };
  };
  try {
    const { status, text, code } = await call;
    if (code === '') return say(isExpected(text) ? 'served' : 'wrong', text.slice(0, 200));
    return say(status === 502 ? 'lost' : 'refused', code);
  } catch (error) {
    return say('lost', messageOf(error));
  }
}

export function transcribe(caller: Caller): Promise<Answer> {
  const body = new FormData();
  body.set('model', 'reference-en');
  body.set('file', new Blob([clipBytes(recorded)]), recorded.file);
  return request(caller, '/v1/audio/transcriptions', { method: 'POST', body });
}

/** Streams the story at the pace of speech. `progress` gets the seconds sent. */
async function tell(client: Official, progress: (seconds: number) => void): Promise<unknown> {
  for (let at = 0; at < storySeconds; at += STEP_S) {
    client.send(part(at, at + STEP_S));
    progress(at);
    await pause(STEP_S * 1_000);
  }
  return client.finish();
}

/** Recognises a refused handshake, or a close code with a reason, as opposed to a network failure. */
const isRefusal = (message: string): boolean => /server response: \d{3}|closed with 4\d{3}/.test(message);

/**
 * Runs a stream of an official client; `heard` has its words. Without `expected` every normal end counts as
 * served.
 */
export async function stream(
  open: () => Promise<Official>,
  progress: (seconds: number) => void,
  expected?: unknown,
): Promise<Outcome & { readonly heard?: unknown }> {
  const startedAt = Date.now();
  let answeredAt = startedAt;
  let sent = 0;
  const say = (result: Result, reason = ''): Outcome => {
    const waitedMs = Math.max(0, Date.now() - startedAt - sent * 1_000);
    return { result, reason, answeredAt, waitedMs };
  };
  let client: Official | undefined;
  try {
    client = await open();
    answeredAt = Date.now();
    const own = client;
    const told = tell(own, (seconds) => {
      sent = seconds + STEP_S;
      progress(sent);
    });
    told.catch(() => {});
    const broken = own.broken().then(() => Promise.reject(new Error(own.troubles.join(', '))));
    const heard = await Promise.race([told, broken]);
    const isEqual = expected === undefined || isDeepStrictEqual(heard, expected);
    return { ...say(isEqual ? 'served' : 'wrong', isEqual ? '' : JSON.stringify(heard).slice(0, 200)), heard };
  } catch (error) {
    if (client === undefined) answeredAt = Date.now();
    const message = messageOf(error);
    return say(!client?.heard() && isRefusal(message) ? 'refused' : 'lost', message);
  } finally {
    progress(0);
    client?.close();
  }
}
