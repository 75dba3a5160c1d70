/** A refusal: Triton's status code, the text for the caller, and the reason for metrics. */
export interface EngineRefusal {
  readonly code: keyof typeof statusOf;
  readonly text: string;
  readonly failure: FailureReason;
}

export const failureReasons = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const;
export type FailureReason = (typeof failureReasons)[number];

/** HTTP statuses of Triton's codes. As in Triton, a model or server that is not ready is 400. */
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
