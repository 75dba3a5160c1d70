import type { Row } from './row.ts';

/** Erasing what the record hides, and holding it. */
export const privacyRefusals = {
  hold_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no such hold.',
  },
  gap_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no such gap in the audit log.',
  },
  holds_most: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'Too many holds: {limit} are allowed.',
  },
  erasures_waiting: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'later',
    text: 'Too many erasures are waiting: {limit} are allowed.',
  },
} as const satisfies Record<string, Row>;
