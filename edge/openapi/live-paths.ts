import { json, query, schema, success } from './parts.ts';
import { rateLimitRefs } from './rate-limit.ts';
import { errors, identified, transcriptionRefusals } from './refusals.ts';

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
const socket = (name: string, text: string) => ({
  name,
  in: 'query',
  required: false,
  description: text,
  schema: { type: 'string' },
});

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
    '/v1/realtime/transcription_sessions': {
      post: {
        operationId: 'createTranscriptionSession',
        summary: 'The same in the retired shape',
        requestBody: { required: false, content: { 'application/json': { schema: { type: 'object' } } } },
        responses: {
          ...success('The session and its secret', { 'application/json': { schema: { type: 'object' } } }),
          ...errors(granting),
        },
      },
    },
    '/v1/realtime': {
      get: {
        operationId: 'openRealtime',
        summary: "WebSocket of OpenAI's realtime transcription. Refusals come as an event, then it is closed.",
        parameters: [
          socket('intent', '`transcription`; may be left out.'),
          socket('model', 'The model, unless the session names it.'),
        ],
        responses: { ...upgrade, ...errors(['upgrade_missing']) },
      },
    },
    '/v1/stream': {
      get: {
        operationId: 'openStream',
        summary:
          'WebSocket of live transcription, as `shared/stream/PROTOCOL.md` says; the first message names the model.',
        parameters: [
          query('session', 'The session to go on with.'),
          query('class', 'Wished class: realtime, interactive, default or batch; never above that of the token.'),
        ],
        responses: { ...upgrade, ...errors(['upgrade_missing']) },
      },
    },
    '/v1/listen': {
      get: {
        operationId: 'openListen',
        summary: "WebSocket of Deepgram's live transcription",
        parameters: [
          query('model', 'The name of a model; needed.'),
          query('language', 'BCP 47 tag, or `multi`.'),
          query('encoding', 'How the sound is written; without it, a WAV file or Ogg Opus.'),
          query('sample_rate', 'Samples per second and channel.'),
          query('channels', '1 or 2; two are mixed down.'),
          query('interim_results', '`true`: results that may still change, too.'),
          query('endpointing', 'Milliseconds of silence that end an utterance, or `false`.'),
          query('utterance_end_ms', 'Milliseconds without words after which `UtteranceEnd` comes.'),
          query('vad_events', '`true`: `SpeechStarted`, too.'),
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
          query('model', 'The name of a model; needed.'),
          query('language', 'BCP 47 tag, or `multi`.'),
          query(
            'encoding',
            'The body is samples and nothing else: `linear16` or `linear32`, with `sample_rate` and `channels`.',
          ),
          query('sample_rate', 'Samples per second and channel.'),
          query('channels', '1 or 2; two are mixed down.'),
          query('detect_language', '`true`: tell which language was heard.'),
          query('utterances', '`true`: the words in groups between pauses, too.'),
          query('utt_split', 'Seconds of such a pause, 0.8 unless told.'),
          query('paragraphs', '`true`: the transcript in paragraphs, too.'),
        ],
        requestBody: {
          required: true,
          content: { 'audio/*': { schema: { type: 'string', format: 'binary' } } },
        },
        responses: {
          ...success('The transcript', { 'application/json': schema('DeepgramRecording') }),
          ...errors(transcriptionRefusals, 'DeepgramError'),
        },
      },
    },
  };
}
