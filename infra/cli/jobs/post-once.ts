// A request that makes something, sent with an Idempotency-Key so that a repeated one makes nothing else.
import { randomUUID } from 'node:crypto';
import type { UploadWorld } from './upload-world.ts';

/** Posts JSON with the key in `headers`, or one of its own. Sends it a second time when no answer came, the edge is unavailable, or the first is still running. */
export async function postOnce(
  url: string,
  headers: Record<string, string>,
  body: unknown,
  { fetch: send, pause }: Pick<UploadWorld, 'fetch' | 'pause'>,
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

/** The pause of a second attempt of `UploadWorld`: half a second to a second. */
const RETRY = 2;

/** Whether the edge was unavailable, or says of a conflict that it passes: the first request is still running. */
const mayRepeat = ({ status, headers }: Response): boolean =>
  status >= 502 || (status === 409 && headers.get('x-should-retry') === 'true');
