import type { RequestContext } from '../context.ts';
import { discardSource, openSource } from './body-source.ts';

/**
 * Returns a refusal that keeps the connection open until the caller has sent its body or the bound is reached. Most
 * clients read the response only after the request, and a connection that closes earlier takes the response along. The
 * refusal itself leaves at once; the edge discards the rest of the body.
 */
export function drainBody(request: Request, response: Response, context: RequestContext): Response {
  const { body } = request;
  if (!body || !response.body) return response;
  const discard = context.discardBody ?? (() => discardSource(openSource(body), context.runtime));
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
    // The caller disconnected.
  }
}
