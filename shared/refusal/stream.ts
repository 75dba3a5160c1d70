import type { Row } from './row.ts';

/** Live streams. */
export const streamRefusals = {
  model_not_live: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'model',
    text: 'The model "{model}" does not hear live streams.',
    more: 'These do: {models}.',
  },
  frame_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The message is not understood: {rule}.',
  },
  event_unknown: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    param: 'type',
    text: 'The message type "{event}" does not exist here: this address transcribes, and nothing else.',
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
    text: 'Another connection goes on with the session.',
  },
  stream_idle: {
    status: 408,
    close: 4408,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'Neither audio nor a message came for {limit} seconds.',
  },
  stream_too_long: {
    status: 413,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The session has reached its greatest length of {limit} seconds. Open another one.',
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
    text: 'What was sent is not being read.',
  },
} as const satisfies Record<string, Row>;
