import { z } from 'zod';
import { modelDescription, poolDescription } from '../shared/pool/description.ts';
import { load } from '../shared/pool/heartbeat.ts';
import { publicText, type Reason, refusals } from '../shared/refusal.ts';
import { repeatedFields, transcriptionFields } from '../shared/speech/openai-form.ts';

/** JSON Schema of what a caller may send: 2020-12, which OpenAPI 3.1 uses as it is. */
const input = (schema: z.ZodType) => strip(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
const output = (schema: z.ZodType) => strip(z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }));

function strip({ $schema: _, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return rest;
}

const listedModel = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.number().int(),
  owned_by: z.string(),
  task: modelDescription.shape.task,
  languages: z.array(z.string()),
  zones: z.array(z.string()),
  pools: z.array(z.string()),
});

const usage = z.object({ type: z.literal('duration'), seconds: z.number().int() });
const transcription = z.object({ text: z.string(), usage });
const verboseTranscription = z.object({
  task: z.literal('transcribe'),
  language: z.string(),
  duration: z.number(),
  text: z.string(),
  words: z.array(z.object({ word: z.string(), start: z.number(), end: z.number() })).optional(),
  segments: z
    .array(
      z.object({
        id: z.number().int(),
        seek: z.number().int(),
        start: z.number(),
        end: z.number(),
        text: z.string(),
        tokens: z.array(z.number().int()),
        temperature: z.number(),
        avg_logprob: z.number(),
        compression_ratio: z.number(),
        no_speech_prob: z.number(),
      }),
    )
    .optional(),
  usage,
});
const listedPool = poolDescription.extend({ load, health: z.string(), heardMs: z.number() });
const outboxPage = z.object({
  epoch: z.string(),
  rows: z.array(z.object({ pseq: z.number().int(), t: z.number().int(), event: z.looseObject({}) })),
  next: z.number().int().optional(),
});
const error = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.enum(Object.keys(refusals) as [Reason, ...Reason[]]),
  }),
});

const everyone: readonly Reason[] = ['method_wrong', 'internal'];
const identified: readonly Reason[] = [
  'token_missing',
  'token_invalid',
  'token_expired',
  'audience_wrong',
  'scope_missing',
];
const transcriptionRefusals: readonly Reason[] = [
  ...identified,
  'language_forbidden',
  'residency_mismatch',
  'sealing_required',
  'allowance_requests',
  'allowance_concurrent',
  'allowance_seconds',
  'model_unknown',
  'language_unknown',
  'field_invalid',
  'field_missing',
  'hints_missing',
  'hints_conflict',
  'form_invalid',
  'content_type_wrong',
  'body_too_large',
  'client_slow',
  'audio_empty',
  'audio_truncated',
  'audio_invalid',
  'audio_unsupported',
  'audio_too_long',
  'no_pool',
  'pool_busy',
  'pool_lost',
  'engine_failed',
  'deadline_passed',
  'audit_unavailable',
];

const requestId = { 'x-request-id': { $ref: '#/components/headers/RequestId' } };
const schema = (name: string) => ({ schema: { $ref: `#/components/schemas/${name}` } });
const success = (description: string, content: object) => ({ '200': { description, headers: requestId, content } });
const json = (name: string) => ({ 'application/json': schema(name) });

/** One entry for each status, with the codes that have it and what they tell. */
function errors(reasons: readonly Reason[]): Record<string, unknown> {
  const byStatus = new Map<number, Reason[]>();
  for (const reason of [...reasons, ...everyone]) {
    const { status } = refusals[reason];
    byStatus.set(status, [...(byStatus.get(status) ?? []), reason]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((reason) => `\`${reason}\`: ${publicText({ reason })}`).join('\n\n'),
        headers: { ...requestId, ...(codes.some((code) => refusals[code].retry !== 'never') && retryHeaders) },
        content: json('Error'),
      },
    ]),
  );
}

const retryHeaders = { 'retry-after': { $ref: '#/components/headers/RetryAfter' } };
const query = (name: string, description: string) => ({
  name,
  in: 'query',
  required: false,
  description,
  schema: { type: 'string' },
});
const hint = (name: string, description: string) => ({ ...query(name, description), in: 'header' });

function transcriptionBody() {
  const fields = input(transcriptionFields) as { properties: Record<string, unknown> };
  const repeated = input(repeatedFields) as { properties: Record<string, unknown> };
  const { timestamp_granularities } = repeated.properties;
  return {
    type: 'object',
    required: ['file', 'model'],
    properties: {
      file: { type: 'string', format: 'binary', description: 'WAV, FLAC, MP3 or Ogg Opus' },
      ...fields.properties,
      'timestamp_granularities[]': timestamp_granularities,
    },
  };
}

function paths() {
  return {
    '/healthz': {
      get: { summary: 'The edge is up', security: [], responses: { ...success('Up', json('Health')), ...errors([]) } },
    },
    '/v1/audio/transcriptions': {
      post: {
        summary: 'The words of a recording',
        parameters: [
          query('model', 'The same as the field `model`; spares the edge from looking for it in the body.'),
          query('language', 'The same as the field `language`.'),
          hint('x-auricle-model', 'The same as the field `model`; needed by large bodies that do not start with it.'),
          hint('x-auricle-language', 'The same as the field `language`.'),
          hint(
            'x-auricle-class',
            'Wished class: realtime, interactive, default or batch; never above that of the token.',
          ),
        ],
        requestBody: { required: true, content: { 'multipart/form-data': schema('TranscriptionRequest') } },
        responses: {
          ...success('The transcript, in the format asked for', {
            'application/json': {
              schema: {
                anyOf: [
                  { $ref: '#/components/schemas/VerboseTranscription' },
                  { $ref: '#/components/schemas/Transcription' },
                ],
              },
            },
            'text/plain': { schema: { type: 'string' } },
            'application/x-subrip': { schema: { type: 'string' } },
            'text/vtt': { schema: { type: 'string' } },
            'text/event-stream': { schema: { type: 'string' } },
          }),
          ...errors(transcriptionRefusals),
        },
      },
    },
    '/v1/models': {
      get: {
        summary: 'The models that can be used now',
        responses: { ...success('Models', json('ModelList')), ...errors(identified) },
      },
    },
    '/v1/models/{name}': {
      get: {
        summary: 'One model',
        parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
        responses: { ...success('The model', json('Model')), ...errors([...identified, 'model_unknown']) },
      },
    },
    '/v1/openapi.json': {
      get: {
        summary: 'This description',
        security: [],
        responses: { ...success('OpenAPI 3.1', { 'application/json': { schema: { type: 'object' } } }), ...errors([]) },
      },
    },
    '/v1/pools': {
      get: {
        summary: 'The living agents',
        responses: { ...success('Agents', json('PoolList')), ...errors(identified) },
      },
    },
    '/v1/pools/heartbeat': {
      get: {
        summary: 'WebSocket of an agent',
        responses: {
          '101': { description: 'Switched to WebSocket' },
          ...errors([...identified, 'residency_mismatch', 'upgrade_missing']),
        },
      },
    },
    '/v1/audit/outbox': {
      get: {
        summary: 'Audit events not yet taken over by the log',
        parameters: [
          query('tenant', 'Whose events; without it, those of the roster of `zone`.'),
          query('zone', 'The zone whose objects are read; by default the first one.'),
          query('after', 'Read on after this position.'),
          query('limit', 'At most so many events.'),
        ],
        responses: {
          ...success('Events, oldest first', json('OutboxPage')),
          ...errors([...identified, 'field_invalid', 'field_missing']),
        },
      },
    },
  };
}

function describe() {
  const list = (item: z.ZodType) => output(z.object({ object: z.literal('list'), data: z.array(item) }));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Auricle',
      version: '0.1.0',
      description: 'Speech inference on your own pools. Compatible with the official OpenAI clients.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths: paths(),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      headers: {
        RequestId: { description: 'Id of the request in logs and audit', schema: { type: 'string' } },
        RetryAfter: { description: 'Seconds after which to try again', schema: { type: 'integer' } },
      },
      schemas: {
        Health: output(z.object({ status: z.literal('ok') })),
        TranscriptionRequest: transcriptionBody(),
        Transcription: output(transcription),
        VerboseTranscription: output(verboseTranscription),
        Model: output(listedModel),
        ModelList: list(listedModel),
        PoolList: list(listedPool),
        OutboxPage: output(outboxPage),
        Error: output(error),
      },
    },
  };
}

/** Made once per isolate, when somebody asks. */
let document: string | undefined;

/** `GET /v1/openapi.json`: generated from the schemas that the code itself reads with. */
export function describeApi(): Response {
  document ??= JSON.stringify(describe());
  return new Response(document, { headers: { 'content-type': 'application/json' } });
}
