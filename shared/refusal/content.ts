import type { Row } from './row.ts';

/** Refusals of the content of a request. */
export const contentRefusals = {
  tensors_invalid: { status: 400, close: 4400, type: 'invalid_request_error', retry: 'never', text: '{rule}' },
  tensors_unsupported: { status: 501, close: 4400, type: 'invalid_request_error', retry: 'never', text: '{rule}' },
  tensors_too_large: {
    status: 400,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The request is over {limit} bytes after decompression.',
  },
  version_unknown: {
    status: 404,
    close: 4404,
    type: 'invalid_request_error',
    retry: 'never',
    text: "The model '{model}' has no version {version}.",
  },
  sequence_unknown: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    // The words of Triton: clients look for them to start a sequence again.
    text: "inference request for sequence {sequence} to model '{model}' must specify the START flag on the first request of the sequence",
  },
  // Triton restarts the sequence and logs a warning. Which of two processes sends the next step is unknown, so a client
  // must not repeat a step by itself: it would enter the sequence of the process that begins again first.
  sequence_open: {
    status: 409,
    close: 4409,
    type: 'invalid_request_error',
    retry: 'never',
    text: "sequence {sequence} of model '{model}' is open: it got START again before END. It was ended, and its requests are refused until it would have been idle; then start again. Processes that share a token need a header x-auricle-session each; with it START begins an open sequence again.",
  },
  audio_empty: { status: 400, close: 4400, type: 'invalid_request_error', retry: 'never', text: 'The file is empty.' },
  audio_truncated: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The audio file ends before its header says it should.',
  },
  audio_invalid: {
    status: 400,
    close: 4400,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The audio file cannot be decoded: {rule}.',
  },
  audio_unsupported: {
    status: 415,
    close: 4415,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'This audio format is not supported. Send WAV, AIFF, FLAC, MP3, Ogg or WebM (Opus, Vorbis), MP4 or M4A (AAC-LC, Opus), AAC (ADTS) or AMR, 8 to 192 kHz, at most 8 channels.',
    more: 'The file holds {found}.',
  },
  audio_live_unsupported: {
    status: 415,
    close: 4415,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'This audio format is not supported live. Send a WAV file (16-bit PCM, 32-bit float, A-law, mu-law), Ogg Opus, WebM (Opus) or AAC (ADTS), 8 to 48 kHz, mono or stereo, or name the encoding of samples or packets. Send MP3, FLAC and other files as recordings.',
    more: 'The stream holds {found}.',
  },
  audio_too_long: {
    status: 413,
    close: 4413,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'The recording is longer than {limit} seconds.',
  },
} as const satisfies Record<string, Row>;
