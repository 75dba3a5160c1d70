import type { Row } from './row.ts';

/** Parts that do not answer, and requests that are repeated because of it. */
export const outageRefusals = {
  // Functions say it before their first write; after that write the outcome is unknown (uploads_unavailable).
  storage_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'Storage does not answer at the moment. Nothing was done.',
  },
  idempotency_key_running: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'soon',
    param: 'Idempotency-Key',
    text: 'The first request with this Idempotency-Key is still running.',
  },
  idempotency_key_reused: {
    status: 422,
    close: 4422,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'Idempotency-Key',
    text: 'This Idempotency-Key belongs to another request. Send a new key with a new request.',
  },
} as const satisfies Record<string, Row>;
