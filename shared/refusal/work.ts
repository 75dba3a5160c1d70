import type { Row } from './row.ts';

/** Whether it can be done now, and what only edge and agent say to each other. */
export const workRefusals = {
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
    text: 'Too many bodies are arriving at once. With the header x-auricle-model, for tensors x-auricle-sequence, they need not be held.',
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
  // Triton's status and words; with a status of 500 or 504 the agent would look broken, as often as a caller likes.
  timeout_passed: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'Request timeout expired: its own timeout of {microseconds} microseconds has passed while it waited for the model.',
  },
  audit_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The request could not be recorded, so it was not served.',
  },
  audit_unreachable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The audit log cannot be read at the moment.',
  },
  audit_closed: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no audit log here.',
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
  // The agent has itself attested again and says hello with the result.
  attestation_stale: {
    status: 403,
    close: 4403,
    type: 'server_error',
    retry: 'soon',
    text: 'Another process of this name has a newer attestation.',
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
