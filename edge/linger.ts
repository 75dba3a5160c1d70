import { discardSource, openSource } from './body-source.ts';
import type { RequestContext } from './context.ts';

/**
 * A refusal while the caller is still sending. Most clients read an answer only after they have sent everything, and
 * a connection that is closed under them takes the answer along. So the answer leaves at once and whole, and the
 * connection stays open, its input thrown away, until the caller has finished or the bound is reached.
 */
export function linger(request: Request, response: Response, context: RequestContext): Response {
  const { body } = request;
  if (!body || !response.body) return response;
  const discard = context.discardBody ?? (() => discardSource(openSource(body), context.surroundings));
  const { readable, writable } = new FixedLengthStream(Number(response.headers.get('content-length')));
  context.waitUntil(send(response.body, writable, discard));
  return new Response(readable, response);
}

async function send(
  body: ReadableStream<Uint8Array>,
  to: WritableStream<Uint8Array>,
  discard: () => Promise<void>,
): Promise<void> {
  try {
    await body.pipeTo(to, { preventClose: true });
    await discard();
    await to.close();
  } catch {
    // The caller did not wait for the answer.
  }
}
