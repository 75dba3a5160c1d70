import { z } from 'zod';
import { publicText, type Reason, type Refusal, refusals } from '../../shared/refusal.ts';
import { refuseWith } from '../http/refuse.ts';

/** Deepgram's error codes; other reasons keep their name. */
const codes: Readonly<Partial<Record<Reason, string>>> = {
  token_missing: 'INVALID_AUTH',
  token_invalid: 'INVALID_AUTH',
  token_expired: 'INVALID_AUTH',
  audience_wrong: 'INVALID_AUTH',
  scope_missing: 'INSUFFICIENT_PERMISSIONS',
  field_invalid: 'INVALID_QUERY_PARAMETER',
  field_missing: 'INVALID_QUERY_PARAMETER',
  json_invalid: 'INVALID_JSON',
  body_too_large: 'PAYLOAD_TOO_LARGE',
  audio_unsupported: 'UNSUPPORTED_MEDIA_TYPE',
  content_type_wrong: 'UNSUPPORTED_MEDIA_TYPE',
  allowance_requests: 'TOO_MANY_REQUESTS',
  allowance_concurrent: 'TOO_MANY_REQUESTS',
  client_slow: 'SLOW_UPLOAD',
};

/** Body of a refusal; `reason` and `type` are `code` and `type` of OpenAI's shape. */
export const deepgramError = z.object({
  err_code: z.string(),
  err_msg: z.string(),
  request_id: z.string(),
  reason: z.string(),
  type: z.string(),
});

/**
 * Renders a refusal in Deepgram's shape, with the headers of every refusal. Its clients do not retry a refused handshake,
 * and those that read headers show `dg-error`.
 */
export function refuseAsDeepgram(refusal: Refusal, request: string): Response {
  const { status, headers } = refuseWith(refusal);
  const text = publicText(refusal);
  const { reason } = refusal;
  const { type } = refusals[reason];
  const error: z.infer<typeof deepgramError> = {
    err_code: codes[reason] ?? reason,
    err_msg: text,
    request_id: request,
    reason,
    type,
  };
  const body = new TextEncoder().encode(JSON.stringify(error));
  headers.set('content-length', String(body.byteLength));
  headers.set('dg-request-id', request);
  // A header holds Latin-1 only, and the text may quote the caller.
  headers.set('dg-error', text.replace(/[^\x20-\x7e]/g, '?'));
  return new Response(body, { status, headers });
}
