import type { Row } from './row.ts';

/** Refusals of operations on pools. */
export const poolRefusals = {
  pool_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'No agent of a pool "{pool}" is connected.',
  },
  pool_needed: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'No other pool of the zone "{zone}" serves {models}. Send "force": true to drain "{pool}" all the same.',
  },
  decision_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'No decision about this request is stored. Decisions are for ten minutes, and of 32 requests a second of each isolate.',
  },
  pools_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The roster of a zone cannot be reached at the moment.',
  },
} as const satisfies Record<string, Row>;
