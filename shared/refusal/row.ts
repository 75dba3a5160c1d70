/** Advice to the caller of a refused request. */
export type Retry = 'never' | 'soon' | 'later';

export interface Row {
  /** HTTP status (RFC 9110; 429 is RFC 6585). */
  readonly status:
    | 400
    | 401
    | 403
    | 404
    | 405
    | 408
    | 409
    | 413
    | 415
    | 421
    | 422
    | 426
    | 429
    | 500
    | 501
    | 502
    | 503
    | 504;
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
  /** Appended when the refusal has all the values that it needs. */
  readonly more?: string;
}
