import { adviseRetry, type Refusal, refusals } from '../../shared/refusal.ts';
import { errorObject } from './openai-stream.ts';

/** The only place where a refusal becomes HTTP. The shape of the body is OpenAI's, which every caller's tools read. */
export function refuseWith(refusal: Refusal): Response {
  const { status } = refusals[refusal.reason];
  const headers = new Headers({ 'content-type': 'application/json', 'cache-control': 'no-store' });

  const { seconds, automatic } = adviseRetry(refusal, Math.random());
  if (seconds !== undefined) {
    headers.set('retry-after', String(seconds));
    headers.set('retry-after-ms', String(seconds * 1_000));
  }
  headers.set('x-should-retry', String(automatic));
  if (status === 401) headers.set('www-authenticate', challenge(refusal));
  if (refusal.reason === 'method_wrong') headers.set('allow', String(refusal.params?.allow ?? ''));
  const body = new TextEncoder().encode(JSON.stringify(errorObject(refusal)));
  headers.set('content-length', String(body.byteLength));
  return new Response(body, { status, headers });
}

/** RFC 6750 §3.1: no error code when no token was sent at all. */
function challenge({ reason }: Refusal): string {
  return reason === 'token_missing' ? 'Bearer realm="auricle"' : 'Bearer realm="auricle", error="invalid_token"';
}
