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
    text: 'The signature is not valid: {rule}.',
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
    text: 'The revision is not at the stage that the statement names. It is at {standing}.',
  },
  sla_missed: {
    status: 422,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The revision misses its promise: {rule}.',
  },
  rollout_held: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The rollout is stopped: {rule}. A person may take it over.',
  },
  alias_moved: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The alias "{alias}" has moved. It names {revision} now.',
  },
  transition_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no such transition.',
  },
  model_files_invalid: {
    status: 422,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The files of the revision are refused: {rule}.',
  },
  model_files_missing: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The store lacks files of this revision of "{model}". Push them with `auricle model push`.',
  },
  models_closed: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'never',
    text: 'This service has no model registry.',
  },
  models_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The model registry cannot be reached at the moment.',
  },
} as const satisfies Record<string, Row>;
