// Sends a creating request with an Idempotency-Key, so that a retry creates nothing else.
import { randomUUID } from 'node:crypto';
import type { UploadEnv } from './upload-env.ts';

/**
 * Posts JSON with the Idempotency-Key of `headers` or a new one. Retries once when there is no response, when
 * the edge is unavailable, or when the first request is still running.
 */
export async function postOnce(
  url: string,
  headers: Record<string, string>,
  body: unknown,
  { fetch: send, pause }: Pick<UploadEnv, 'fetch' | 'pause'>,
): Promise<Response> {
  const init = {
    method: 'POST',
    headers: { 'idempotency-key': randomUUID(), ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const first = await send(url, init).catch(() => undefined);
  if (first && !mayRepeat(first)) return first;
  await first?.body?.cancel();
  await pause(RETRY);
  return send(url, init);
}

/** Attempt number passed to `UploadWorld.pause`: half a second to a second. */
const RETRY = 2;

/**
 * Reports a retryable response: the edge is unavailable, or a 409 with `x-should-retry` because the first
 * request still runs.
 */
const mayRepeat = ({ status, headers }: Response): boolean =>
  status >= 502 || (status === 409 && headers.get('x-should-retry') === 'true');
