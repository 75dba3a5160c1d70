import type { Row } from './row.ts';

/** Refusals of operations on revisions of models. */
export const modelRefusals = {
  revision_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The model "{model}" has no such revision.',
  },
  signature_invalid: {
    status: 422,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The signature does not hold: {rule}.',
  },
  gate_closed: {
    status: 422,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The gate stays closed: {rule}.',
  },
  stage_passed: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The revision does not stand where the statement says. It stands at {standing}.',
  },
  sla_missed: {
    status: 422,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The revision does not keep what was promised of it: {rule}.',
  },
  rollout_held: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The revision goes no further: {rule}. A person may take over.',
  },
  alias_moved: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The alias "{alias}" does not name what it was moved from. It names {revision}.',
  },
  transition_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no such transition.',
  },
  models_closed: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'never',
    text: 'Revisions of models are not kept here.',
  },
  models_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The revisions of models cannot be reached at the moment.',
  },
} as const satisfies Record<string, Row>;
