import type { Row } from './row.ts';

/** Text on its way to being spoken. */
export const projectRefusals = {
  project_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no such project.',
  },
  document_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The project has no such document.',
  },
  segment_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The document has no such segment.',
  },
  project_exists: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is a project of this id already.',
  },
  project_status_wrong: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'This cannot be done while it is {status}.',
  },
  edition_passed: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The document was changed meanwhile. Read it and seal the segment for edition {edition}.',
  },
  text_empty: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is no text.',
  },
  text_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The text cannot be read: {rule}.',
  },
  text_too_long: {
    status: 413,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The text is too long: {limit} {unit} are allowed.',
  },
  text_unspeakable: {
    status: 422,
    close: 4422,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The text has nothing in it that can be spoken.',
  },
  voice_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'voice',
    text: 'The model has no such voice.',
  },
} as const satisfies Record<string, Row>;
