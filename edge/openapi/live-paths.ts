import { z } from 'zod';
import { CALLBACK_CHARACTERS } from '../../shared/jobs/upload-contract.ts';
import { transcriptionFields } from '../../shared/speech/openai-form.ts';
import { KEYWORD, TERM_CHARACTERS, TERMS_MAX } from '../../shared/speech/terms.ts';
import { AUDIO_CHANNELS_MAX, AUDIO_RATE_MAX_HZ, AUDIO_RATE_MIN_HZ } from '../../shared/speech/wav.ts';
import { encodings } from '../../shared/stream/format.ts';
import { SESSION } from '../stream/enter.ts';
import { audioTypes, bytes, degradedHeaders, json, needed, query, requestClass, success, uploadKey } from './parts.ts';
import { rateLimitRefs } from './rate-limit.ts';
import { errors, identified, takingUpload, transcriptionRefusals } from './refusals.ts';
import { input, like, oneOf, text, whole } from './values.ts';

const granting = [
  ...identified,
  'grant_closed',
  'grant_repeated',
  'field_invalid',
  'json_invalid',
  'body_too_large',
  'client_slow',
  'audit_unavailable',
] as const;

const upgrade = { '101': { description: 'Switched to WebSocket', headers: rateLimitRefs } };
const refusedUpgrade = [...identified, 'upgrade_missing'] as const;
const field = transcriptionFields.shape;
const model = needed(query('model', 'The name of a model.', input(field.model)));
const language = query(
  'language',
  'A language, a list of them, `auto` or `multi`.',
  input(field.language.or(z.literal('multi'))),
);
const flag = (name: string, text: string) => query(name, text, oneOf(['true', 'false']));
const rate = whole(AUDIO_RATE_MIN_HZ, AUDIO_RATE_MAX_HZ);
const sampleRate = query('sample_rate', 'Samples per second and channel; needed with most encodings.', rate);
const detectLanguage = query(
  'detect_language',
  '`true`: reports the language. A tag: the language is this one, or one of several; repeats.',
  { type: 'string', pattern: '^(true|false|[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3})$' },
);
const terms = [
  query(
    'keyterm',
    `A word or phrase to raise; repeats, at most ${TERMS_MAX} with \`keywords\`.`,
    text(0, TERM_CHARACTERS),
  ),
  query('keywords', 'A word to raise and, behind a colon, its boost; repeats.', {
    ...text(0, TERM_CHARACTERS),
    pattern: KEYWORD.source,
  }),
];
const channels = query('channels', 'Two are mixed down.', whole(1, AUDIO_CHANNELS_MAX));

const acceptedRecording = {
  type: 'object',
  properties: { request_id: { type: 'string', description: 'Id of the upload' } },
  required: ['request_id'],
};

/** Live sound, recordings as Deepgram's clients send them, and the tokens for phones and browsers. */
export function livePaths() {
  return {
    '/v1/auth/grant': {
      post: {
        operationId: 'grant',
        summary: "A short-lived token for live sound and, with `scope`, recordings, as Deepgram's clients ask for it",
        requestBody: { required: false, content: json('GrantRequest') },
        responses: { ...success('The token', json('Grant')), ...errors(granting, 'DeepgramError') },
      },
    },
    '/v1/realtime/client_secrets': {
      post: {
        operationId: 'createClientSecret',
        summary: "A short-lived token for a realtime session, as OpenAI's clients ask for it",
        requestBody: { required: false, content: json('ClientSecretRequest') },
        responses: { ...success('The secret', json('ClientSecret')), ...errors(granting) },
      },
    },
    ...streamPaths(),
  };
}

/** WebSockets of live sound. */
function streamPaths() {
  return {
    '/v1/realtime': {
      get: {
        operationId: 'openRealtime',
        summary: "WebSocket of OpenAI's realtime transcription. Refusals come as an event, then it is closed.",
        parameters: [
          query('intent', 'May be left out.', oneOf(['transcription'])),
          query('model', 'The model, unless the session names it.', input(field.model)),
          query('language', 'The language, unless the session names it.', input(field.language)),
          requestClass,
        ],
        responses: { ...upgrade, ...errors(refusedUpgrade) },
      },
    },
    '/v1/stream': {
      get: {
        operationId: 'openStream',
        summary:
          'WebSocket of live transcription, as `shared/stream/PROTOCOL.md` says; the first message names the model.',
        parameters: [
          query('session', 'The session to resume.', like(SESSION)),
          query('class', 'The same as the header `x-auricle-class`.'),
          requestClass,
        ],
        responses: { ...upgrade, ...errors(refusedUpgrade) },
      },
    },
    ...listenPaths(),
  };
}

const callback = query('callback', 'The recording becomes an upload; this address is notified of its end.', {
  type: 'string',
  format: 'uri',
  pattern: '^https?://',
  maxLength: CALLBACK_CHARACTERS,
});

/** Recordings and live sound as Deepgram's clients send them. */
function listenPaths() {
  return {
    '/v1/listen': {
      get: {
        operationId: 'openListen',
        summary: "WebSocket of Deepgram's live transcription",
        parameters: [
          model,
          language,
          query(
            'encoding',
            'Encoding of the audio; default: a WAV file, Ogg Opus, WebM (Opus) or AAC (ADTS).',
            oneOf(encodings),
          ),
          sampleRate,
          channels,
          flag('interim_results', '`true`: sends interim results.'),
          query('endpointing', 'Milliseconds of silence that end an utterance, or a flag.', {
            anyOf: [whole(0, 10_000), oneOf(['true', 'false'])],
          }),
          query('utterance_end_ms', 'Milliseconds without words before `UtteranceEnd`.', whole(500, 10_000)),
          ...terms,
          flag('vad_events', '`true`: sends `SpeechStarted`.'),
          requestClass,
        ],
        responses: {
          ...upgrade,
          ...errors(
            [...identified, 'sealing_required', 'field_invalid', 'field_missing', 'upgrade_missing'],
            'DeepgramError',
          ),
        },
      },
      post: {
        operationId: 'listen',
        summary: "The words of a recording, in Deepgram's shape",
        parameters: [
          model,
          language,
          query(
            'encoding',
            '`linear16`, `linear32`: the body is samples and nothing else; `sample_rate` is needed. Otherwise it is a file.',
            oneOf(['linear16', 'linear32', 'ogg-opus', 'webm', 'aac']),
          ),
          sampleRate,
          channels,
          flag('multichannel', '`true`: a transcript for each channel, at most 8; not with `callback`.'),
          detectLanguage,
          flag('utterances', '`true`: includes utterances, words between pauses.'),
          query('utt_split', 'Seconds of such a pause; default 0.8.', {
            type: 'number',
            exclusiveMinimum: 0,
            maximum: 60,
          }),
          ...terms,
          flag('paragraphs', '`true`: includes paragraphs.'),
          callback,
          uploadKey,
          requestClass,
        ],
        requestBody: {
          required: true,
          description:
            'WAV, FLAC, MP3, Ogg, WebM, MP4, AAC or AMR; or samples, as `encoding` says. Any type but `application/json`.',
          content: {
            ...Object.fromEntries(audioTypes.map((type) => [type, bytes])),
            'application/octet-stream': bytes,
          },
        },
        responses: {
          ...success(
            'The transcript; with `callback`, the id of the upload',
            {
              'application/json': {
                schema: { anyOf: [{ $ref: '#/components/schemas/DeepgramRecording' }, acceptedRecording] },
              },
            },
            degradedHeaders,
          ),
          ...errors([...transcriptionRefusals, ...takingUpload], 'DeepgramError'),
        },
      },
    },
  };
}
