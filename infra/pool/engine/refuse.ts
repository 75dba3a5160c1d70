/** Why a request got no result: Triton's status codes, the text for the caller, and the reason its metrics count. */
export interface EngineRefusal {
  readonly code: keyof typeof statusOf;
  readonly text: string;
  readonly failure: FailureReason;
}

export const failureReasons = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const;
export type FailureReason = (typeof failureReasons)[number];

/** The one table from Triton's codes to HTTP. A model or server that is not ready is 400 there, and so it is here. */
export const statusOf = {
  INVALID_ARG: 400,
  CANCELLED: 400,
  NOT_FOUND: 404,
  METHOD: 405,
  INTERNAL: 500,
  UNSUPPORTED: 501,
  UNAVAILABLE: 503,
} as const;

export const refuse = (
  code: EngineRefusal['code'],
  text: string,
  failure: FailureReason = 'OTHER',
): { ok: false; refusal: EngineRefusal } => ({ ok: false, refusal: { code, text, failure } });
