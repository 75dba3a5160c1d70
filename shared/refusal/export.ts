import type { Row } from './row.ts';

/** Exports of the audit log. */
export const exportRefusals = {
  exports_open: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'later',
    text: 'As many exports as may be made at a time are being made already.',
  },
  exports_spent: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'later',
    text: 'No more exports for now: there may be {most}. Come again after {again}.',
  },
  export_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no such export, or its files are not there.',
  },
} as const satisfies Record<string, Row>;
