import type { Row } from './row.ts';

/** Live streams. */
export const streamRefusals = {
  model_not_live: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'model',
    text: 'The model "{model}" does not serve live streams.',
    more: 'Use one of: {models}.',
  },
  frame_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The message is not valid: {rule}.',
  },
  event_unknown: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'type',
    text: 'The message type "{event}" is not supported: this address only transcribes.',
  },
  // The code is OpenAI's: clients look for it.
  input_audio_buffer_commit_empty: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'There is too little audio to commit: at least {least} ms are needed, and there are {milliseconds} ms.',
  },
  message_too_large: {
    status: 413,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The message is over {limit} bytes.',
  },
  resume_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The session cannot be resumed with this token, by this caller or in this format.',
  },
  stream_replaced: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'Another connection has resumed the session.',
  },
  stream_idle: {
    status: 408,
    close: 4408,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'No audio or message arrived for {limit} seconds.',
  },
  stream_too_long: {
    status: 413,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The session has reached its maximum of {limit} seconds. Open another one.',
  },
  backlog_full: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'soon',
    text: 'More audio waits to be transcribed than can be buffered. Send it more slowly, or upload the recording.',
  },
  reader_slow: {
    status: 408,
    close: 4408,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The client does not read the messages that were sent to it.',
  },
} as const satisfies Record<string, Row>;
