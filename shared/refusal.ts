/** What a caller should do after a "no". */
type Retry = 'never' | 'soon' | 'later';

interface Row {
  /** HTTP status (RFC 9110; 429 is RFC 6585). */
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 413 | 415 | 421 | 422 | 426 | 429 | 500 | 502 | 503 | 504;
  /** WebSocket close code (RFC 6455 §7.4; 4000–4999 are ours). */
  readonly close: number;
  /** `type` of an OpenAI error object. */
  readonly type:
    | 'invalid_request_error'
    | 'authentication_error'
    | 'permission_error'
    | 'rate_limit_error'
    | 'server_error';
  readonly retry: Retry;
  /** The field at fault, where it is always the same; otherwise `params.field` of the refusal. */
  readonly param?: string;
  /** The sentence for the caller. `{name}` is filled from the refusal's `params`, which hold safe values only. */
  readonly text: string;
}

/**
 * Every expected "no" of the system: reason → what the caller is told. The reason is also the public error code.
 * A status other than 408, 429 and 5xx is never retried by the official clients; where they would retry without hope,
 * `retry: 'never'` becomes `x-should-retry: false`.
 */
export const refusals = {
  // Who are you
  token_missing: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'No token was sent. Send "Authorization: Bearer <token>".',
  },
  token_invalid: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'The token is not valid here.',
  },
  token_expired: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'The token has expired.',
  },
  audience_wrong: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'The token was issued for another audience.',
  },
  identity_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The token cannot be checked at the moment.',
  },
  // What may you do
  scope_missing: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The token lacks the scope "{scope}".',
  },
  language_forbidden: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The token does not allow the language "{language}".',
  },
  residency_mismatch: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The model is not served in a region the token allows.',
  },
  zone_unserved: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The zone "{zone}" is not served here.',
  },
  sealing_required: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'This tenant accepts only audio sealed by the client.',
  },
  allowance_requests: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'soon',
    text: 'Too many requests in this minute: {limit} are allowed.',
  },
  allowance_concurrent: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'soon',
    text: 'Too many requests at once: {limit} are allowed.',
  },
  allowance_seconds: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'later',
    text: "Today's allowance of {limit} seconds of audio is used up.",
  },
  // What did you ask for
  route_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is nothing at this address.',
  },
  method_wrong: {
    status: 405,
    close: 4405,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'This address answers {allow} only.',
  },
  model_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'model',
    text: 'The model "{model}" does not exist here.',
  },
  language_unknown: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'language',
    text: 'The model "{model}" does not know the language "{language}".',
  },
  field_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The field "{field}" is not valid: {rule}.',
  },
  field_missing: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The field "{field}" is missing.',
  },
  hints_missing: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'model',
    text: 'Put the field "model" before the file, or add ?model= to the address, or send the header x-auricle-model: it is not in the first {limit} bytes of the body.',
  },
  hints_late: {
    status: 408,
    close: 4408,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'model',
    text: 'The field "model" did not arrive within {limit} seconds. Put it before the file, or add ?model= to the address, or send the header x-auricle-model.',
  },
  hints_conflict: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The field "{field}" of the body differs from the one in the header or query.',
  },
  form_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The body is not a complete multipart form.',
  },
  content_type_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The content type of the body is not valid: it {rule}.',
  },
  content_type_wrong: {
    status: 415,
    close: 4415,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The body must be multipart/form-data.',
  },
  body_too_large: {
    status: 413,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The body is over {limit} bytes. Cut the recording into pieces.',
  },
  client_slow: {
    status: 408,
    close: 4408,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The body stopped arriving for {limit} seconds.',
  },
  upgrade_missing: {
    status: 426,
    close: 4426,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'This address speaks WebSocket only.',
  },
  // What did you send
  audio_empty: { status: 400, close: 4400, type: 'invalid_request_error', retry: 'never', text: 'The file is empty.' },
  audio_truncated: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The audio file ends before its header says it should.',
  },
  audio_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The audio file cannot be decoded: {rule}.',
  },
  audio_unsupported: {
    status: 415,
    close: 4415,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'This audio format is not supported. Send WAV (16, 24 or 32-bit PCM, 32-bit float), FLAC, MP3 or Ogg Opus, 8 to 48 kHz, mono or stereo.',
  },
  audio_too_long: {
    status: 413,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The recording is longer than {limit} seconds.',
  },
  // Can we do it now
  no_pool: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'No pool can take the request at the moment.',
  },
  edge_busy: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'Too many bodies are arriving at once. With ?model= in the address or the header x-auricle-model they need not be held.',
  },
  pool_busy: { status: 503, close: 4503, type: 'server_error', retry: 'soon', text: 'The pool is busy.' },
  pool_lost: {
    status: 502,
    close: 4502,
    type: 'server_error',
    retry: 'soon',
    text: 'The connection to the pool was lost before the transcript was complete. The request can be sent again.',
  },
  engine_failed: {
    status: 502,
    close: 4502,
    type: 'server_error',
    retry: 'soon',
    text: 'The recogniser failed on this request.',
  },
  deadline_passed: {
    status: 504,
    close: 4504,
    type: 'server_error',
    retry: 'soon',
    text: 'The request was not finished in time.',
  },
  audit_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The request could not be recorded, so it was not served.',
  },
  // Between edge and agent; a caller sees pool_lost instead
  ticket_invalid: {
    status: 403,
    close: 4403,
    type: 'server_error',
    retry: 'never',
    text: 'The ticket is not valid for this agent.',
  },
  ticket_replayed: {
    status: 403,
    close: 4403,
    type: 'server_error',
    retry: 'never',
    text: 'The ticket was used before.',
  },
  misdirected: {
    status: 421,
    close: 4421,
    type: 'server_error',
    retry: 'soon',
    text: 'This agent does not serve the request.',
  },
  seal_broken: {
    status: 400,
    close: 4400,
    type: 'server_error',
    retry: 'never',
    text: 'The sealed body cannot be opened.',
  },
  attestation_invalid: {
    status: 403,
    close: 4403,
    type: 'server_error',
    retry: 'later',
    text: 'The attestation of the pool is not accepted.',
  },
  heartbeat_invalid: {
    status: 403,
    close: 4403,
    type: 'server_error',
    retry: 'later',
    text: 'The report is not signed by an attested agent.',
  },
  internal: {
    status: 500,
    close: 1011,
    type: 'server_error',
    retry: 'soon',
    text: 'Something went wrong here. It has been noted under the request id.',
  },
} as const satisfies Record<string, Row>;

export type Reason = keyof typeof refusals;

export interface Refusal {
  readonly reason: Reason;
  /** Values for the public sentence: names and numbers that the caller sent or may know. */
  readonly params?: Readonly<Record<string, string | number>>;
  /** For our logs and the audit record only; never sent. Must hold no audio, transcript or token. */
  readonly detail?: string;
}

export function refuse(reason: Reason, params?: Refusal['params'], detail?: string): Refusal {
  return { reason, ...(params && { params }), ...(detail !== undefined && { detail }) };
}

export const isReason = (value: unknown): value is Reason =>
  typeof value === 'string' && Object.hasOwn(refusals, value);

/** The sentence for the caller. A parameter that is missing stays visible as `{name}`, which a test forbids. */
export function publicText({ reason, params = {} }: Refusal): string {
  return refusals[reason].text.replace(/\{(\w+)\}/g, (whole, name: string) =>
    String(params[name] ?? whole).slice(0, 200),
  );
}

/** Seconds for `retry-after`, small because official clients honour at most 60; `undefined` when retrying is no use. */
export function retryAfterSeconds(reason: Reason, random: number): number | undefined {
  const advice = refusals[reason].retry;
  if (advice === 'never') return undefined;
  return advice === 'soon' ? 1 + Math.floor(random * 2) : 30 + Math.floor(random * 30);
}
