import { requestedModel } from '../../shared/registry/names.ts';
import { SPEECH_RATE_MAX, SPEECH_RATE_MIN, speechEncodings, speechRates } from '../../shared/speech/speak.ts';
import { bytes, json, query, requestClass, requestId, schema, success } from './parts.ts';
import { rateLimitRefs } from './rate-limit.ts';
import { allowance, errors, identified, routed } from './refusals.ts';
import { input, oneOf, text } from './values.ts';

const speechRefusals = [
  ...identified,
  'sealing_required',
  ...allowance,
  'field_invalid',
  'field_missing',
  'json_invalid',
  'body_too_large',
  'client_slow',
  'text_invalid',
  'text_too_long',
  'text_unspeakable',
  'voice_unknown',
  'model_unknown',
  'model_unfit',
  'language_unknown',
  'language_forbidden',
  'residency_mismatch',
  ...routed,
] as const;

const refusedSocket = [
  ...identified,
  'upgrade_missing',
  'sealing_required',
  'field_invalid',
  'field_missing',
  'model_unknown',
  'model_unfit',
  'language_forbidden',
  'residency_mismatch',
  'edge_busy',
] as const;

const options = [
  query('model', 'The name of a model; by default the model that is named `default`.', input(requestedModel)),
  query('voice', 'A voice of the model; by default its first.', text(1, 64)),
  query('speed', 'Factor of the natural rate.', {
    type: 'number',
    minimum: SPEECH_RATE_MIN,
    maximum: SPEECH_RATE_MAX,
  }),
  query('sample_rate', 'Default: 24000; 8000 (or 16000) with G.711, 48000 with Opus.', {
    type: 'integer',
    enum: [...speechRates],
  }),
  requestClass,
];

/** Speech of a text in one request, and on a WebSocket. */
export function speechPaths() {
  return {
    '/v1/audio/speech': {
      post: {
        operationId: 'createSpeech',
        summary: 'Speech of a text, sent sentence by sentence',
        description: 'A loss after the first sound resets the connection: speech that ends is whole.',
        parameters: [requestClass],
        requestBody: { required: true, content: { 'application/json': schema('SpeechRequest') } },
        responses: {
          ...success('The speech', {
            'audio/wav': bytes,
            'audio/pcm': bytes,
            'audio/ogg': bytes,
            'text/event-stream': {
              schema: {
                type: 'string',
                description: 'Frames `speech.audio.delta` (base64) and `speech.audio.done` of OpenAI.',
              },
            },
          }),
          ...errors(speechRefusals),
        },
      },
    },
    '/v1/audio/voices': {
      get: {
        operationId: 'listVoices',
        summary: 'The voices that can be used now',
        responses: { ...success('Voices', json('VoiceList')), ...errors(identified) },
      },
    },
    '/v1/speak': {
      get: {
        operationId: 'openSpeak',
        summary: "WebSocket of Deepgram's speech synthesis: Speak, Flush, Clear and Close in, sound out",
        parameters: [
          query('encoding', 'Default: linear16.', oneOf(['linear16', 'mulaw', 'alaw'])),
          query('container', 'Samples only.', oneOf(['none'])),
          ...options,
        ],
        responses: {
          '101': { description: 'Switched to WebSocket', headers: { ...requestId, ...rateLimitRefs } },
          ...errors(refusedSocket, 'DeepgramError'),
        },
      },
      post: {
        operationId: 'speak',
        summary: "Speech of a text, as Deepgram's clients ask for it",
        parameters: [
          query('encoding', 'Default: linear16.', oneOf(speechEncodings)),
          query('container', 'Default: wav, with Opus ogg.', oneOf(['wav', 'ogg', 'none'])),
          ...options,
        ],
        requestBody: { required: true, content: { 'application/json': schema('SpeakRequest') } },
        responses: {
          ...success('The speech', {
            'audio/wav': bytes,
            'audio/ogg': bytes,
            'audio/pcm': bytes,
            'audio/basic': bytes,
            'audio/PCMA': bytes,
          }),
          ...errors(speechRefusals, 'DeepgramError'),
        },
      },
    },
  };
}
