import type { Row } from './row.ts';

/** Exports of the audit log. */
export const exportRefusals = {
  exports_open: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'later',
    text: 'Too many exports are running. Retry when one has finished.',
  },
  exports_spent: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'later',
    text: 'The limit of {most} exports is reached. Retry after {again}.',
  },
  export_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The export does not exist, or its files have been deleted.',
  },
} as const satisfies Record<string, Row>;
