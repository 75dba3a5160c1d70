import { clampRetry, type Refusal, refuse } from '../../../../../shared/refusal.ts';
import type { EngineResponse } from '../http.ts';
import { jsonOf } from './transcript.ts';

/** Statuses with which a server refuses what it was sent; its message is about the sound or the model. */
const REFUSED = new Set([400, 413, 415, 422]);

/** Members in which servers put their message: OpenAI and vLLM, whisper.cpp, FastAPI. */
const MESSAGE_MEMBERS = ['error', 'detail', 'message', 'msg'];
/** Depth of those members: FastAPI puts OpenAI's body into `detail`, and lists into that. */
const MESSAGE_DEPTH = 4;

/** Returns the first message in a body, in one line and without its full stop. */
function messageIn(value: unknown, depth = MESSAGE_DEPTH): string | undefined {
  if (typeof value === 'string') return value.replace(/\p{Cc}+/gu, ' ').replace(/[.\s]+$/, '') || undefined;
  if (depth === 0 || typeof value !== 'object' || value === null) return undefined;
  const members = Array.isArray(value) ? value.slice(0, 1) : MESSAGE_MEMBERS.map((name) => Reflect.get(value, name));
  return members.map((member) => messageIn(member, depth - 1)).find((message) => message !== undefined);
}

/** Seconds of a `Retry-After`; a date, which no inference server sends, counts as none. */
function retryAfterOf({ headers }: Pick<EngineResponse, 'headers'>): number | undefined {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  return Number.isFinite(seconds) ? clampRetry(1_000 * seconds) : undefined;
}

/**
 * Translates an error of the server for the caller: `pool_busy` where it is full, with its own estimate, and
 * `engine_failed` with its message where it refuses the request. Returns `undefined` for any other status, whose message
 * may quote the key.
 */
export function serverRefusal(response: Pick<EngineResponse, 'status' | 'headers' | 'body'>): Refusal | undefined {
  const { status, body } = response;
  const detail = `engine status ${status}`;
  if (status === 429 || status === 503) {
    const retryAfter = retryAfterOf(response);
    return { ...refuse('pool_busy', undefined, detail), ...(retryAfter !== undefined && { retryAfter }) };
  }
  const rule = REFUSED.has(status) ? messageIn(jsonOf(body)) : undefined;
  return rule === undefined ? undefined : refuse('engine_failed', { rule }, detail);
}
