import { agentDescription } from '../../shared/pool/description.ts';
import { transcriptionFields } from '../../shared/speech/openai-form.ts';
import { requestName } from '../routing/show-route.ts';
import { auditPaths } from './audit-paths.ts';
import { kservePaths } from './kserve-paths.ts';
import { livePaths } from './live-paths.ts';
import { modelPaths } from './model-paths.ts';
import {
  audioTypes,
  bytes,
  degradedHeaders,
  hint,
  inPath,
  json,
  namedModel,
  query,
  requestClass,
  requestId,
  schema,
  success,
  text,
  uploadKey,
} from './parts.ts';
import { projectPaths } from './project-paths.ts';
import { errors, identified, takingUpload, transcriptionRefusals } from './refusals.ts';
import { speechPaths } from './speech-paths.ts';
import { uploadPaths } from './upload-paths.ts';
import { input, like, whole } from './values.ts';

const field = { model: input(transcriptionFields.shape.model), language: input(transcriptionFields.shape.language) };
/** The name of a tenant, or what stands for callers without a token. */
const OUTBOX_OWNER = /^(?:@anonymous|[a-z0-9][a-z0-9_-]{0,62})$/;

/** Types of recordings; the file itself decides. */
const encoding = { file: { contentType: audioTypes.join(', ') } };

const takenUpload = {
  type: 'object',
  properties: { object: { const: 'upload' }, id: { type: 'string' } },
  required: ['object', 'id'],
};

/** Every address with what it takes and answers. */
export function paths() {
  return {
    '/healthz': {
      get: {
        operationId: 'health',
        summary: 'The edge is up',
        security: [],
        responses: { ...success('Up', json('Health')), ...errors([]) },
      },
    },
    '/v1/audio/transcriptions': {
      post: {
        operationId: 'transcribe',
        summary: 'Transcript of a recording',
        parameters: [
          query('model', 'The same as the field `model`; the edge then does not search the body.', field.model),
          query('language', 'The same as the field `language`.', field.language),
          hint(
            'x-auricle-model',
            'The same as the field `model`; needed, here or in the query, by large bodies that do not start with it.',
            field.model,
          ),
          hint('x-auricle-language', 'The same as the field `language`.', field.language),
          requestClass,
          hint('x-auricle-upload', '`true`: the file becomes an upload; the answer is that upload.'),
          uploadKey,
        ],
        requestBody: {
          required: true,
          content: { 'multipart/form-data': { ...schema('TranscriptionRequest'), encoding } },
        },
        responses: {
          ...success(
            'The transcript, in the format asked for',
            {
              'application/json': {
                schema: {
                  anyOf: [
                    { $ref: '#/components/schemas/VerboseTranscription' },
                    { $ref: '#/components/schemas/Transcription' },
                  ],
                },
              },
              'text/plain': text,
              'application/x-subrip': text,
              'text/vtt': text,
              'text/event-stream': {
                schema: {
                  type: 'string',
                  description: 'Frames `transcript.text.delta` and `transcript.text.done` of OpenAI, then `[DONE]`.',
                },
              },
            },
            degradedHeaders,
          ),
          '202': {
            description: 'The upload, if requested; its id alone if its status cannot be read now',
            headers: requestId,
            content: {
              'application/json': { schema: { anyOf: [{ $ref: '#/components/schemas/Upload' }, takenUpload] } },
            },
          },
          ...errors([...transcriptionRefusals, ...takingUpload]),
        },
      },
    },
    ...speechPaths(),
    ...livePaths(),
    ...uploadPaths(),
    ...modelPaths(),
    ...projectPaths(),
    ...servicePaths(),
    ...logPaths(),
  };
}

/** Served models, agents and this description. */
function servicePaths() {
  return {
    '/metrics': {
      get: {
        operationId: 'showMetrics',
        summary: 'Metrics of the edge for Prometheus; for operators',
        description: 'Sums of every isolate since the Roster of each zone started (METRICS.md). Scope `operate`.',
        responses: { ...success('The page, text format 0.0.4', { 'text/plain': text }), ...errors(identified) },
      },
    },
    '/v1/models': {
      get: {
        operationId: 'listModels',
        summary: 'The models that can be used now',
        responses: { ...success('Models', json('ModelList')), ...errors(identified) },
      },
    },
    '/v1/models/{name}': {
      get: {
        operationId: 'getModel',
        summary: 'One model',
        parameters: [namedModel],
        responses: { ...success('The model', json('Model')), ...errors([...identified, 'model_unknown']) },
      },
    },
    '/v1/openapi.json': {
      get: {
        operationId: 'getOpenapi',
        summary: 'This description',
        security: [],
        responses: { ...success('OpenAPI 3.1', { 'application/json': { schema: { type: 'object' } } }), ...errors([]) },
      },
    },
    '/v1/requests/{name}/route': {
      get: {
        operationId: 'explainRoute',
        summary: 'How the agents of a recent request were chosen',
        parameters: [inPath('name', 'Id of the request, as in `x-request-id`', input(requestName))],
        responses: {
          ...success('The decision', json('RouteDecision')),
          ...errors([...identified, 'decision_unknown', 'pools_unavailable']),
        },
      },
    },
    '/v1/pools': {
      get: {
        operationId: 'listPools',
        summary: 'The agents, recently disconnected and refused ones included',
        responses: { ...success('Agents', json('PoolList')), ...errors(identified) },
      },
    },
    '/v1/pools/{pool}/drain': {
      post: {
        operationId: 'drainPool',
        summary: 'Has the agents of a pool take no new work, finish requests and hand live streams to others',
        description: 'An agent serves again once its process restarts. The order is recorded in the audit log.',
        parameters: [inPath('pool', 'Name of the pool', input(agentDescription.shape.pool))],
        requestBody: { content: { 'application/json': schema('DrainRequest') } },
        responses: {
          ...success('The agents that have the order', json('DrainedPool')),
          ...errors([
            ...identified,
            ...(['pool_unknown', 'pool_needed', 'pools_unavailable', 'audit_unreachable'] as const),
            ...(['field_invalid', 'json_invalid', 'body_too_large', 'client_slow'] as const),
          ]),
        },
      },
    },
    '/v1/pools/heartbeat': {
      get: {
        operationId: 'joinRoster',
        summary: 'WebSocket of an agent',
        responses: {
          '101': { description: 'Switched to WebSocket' },
          ...errors([...identified, 'zone_unserved', 'pool_busy', 'upgrade_missing']),
        },
      },
    },
  };
}

/** Files and outboxes of the audit log. */
function logPaths() {
  return {
    '/v1/audit/log': {
      get: {
        operationId: 'listAuditLogs',
        summary: 'The audit logs of the zones of the token, of all years, and the keys that sign them',
        description:
          'Of each zone the newest first. A log that has ended (`closed`) is read, verified and exported as before. The ' +
          'read is recorded.',
        parameters: [query('zone', 'Zone of the logs; default: all zones of the token.')],
        responses: {
          ...success('Logs', json('AuditLogList')),
          ...errors([...identified, 'zone_unserved', 'allowance_concurrent']),
        },
      },
    },
    '/v1/audit/log/{name}': {
      get: {
        operationId: 'readAuditLog',
        summary: 'A file of an audit log, as C2SP tlog-tiles lays it out',
        description:
          '`{zone}/{year}/checkpoint`, or `{zone}/{year}/tile/…`, with unescaped slashes; also `receipt/{index}` ' +
          '(a C2SP tlog-proof), `witnessed` (the newest checkpoint that witnesses have signed) and `policy` (C2SP ' +
          'tlog-policy). The scope `audit` opens all of it but the entries (`tile/entries/…`), which are of all tenants ' +
          'and for `operate`.',
        parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
        responses: {
          ...success('The file', {
            'text/plain': text,
            'application/octet-stream': bytes,
          }),
          ...errors([
            ...identified,
            ...([
              'audit_closed',
              'route_unknown',
              'audit_unreachable',
              'zone_unserved',
              'allowance_concurrent',
            ] as const),
          ]),
        },
      },
    },
    ...auditPaths(),
    ...kservePaths(),
    '/v1/audit/outbox': {
      get: {
        operationId: 'readAuditOutbox',
        summary: 'Audit events not yet taken over by the log',
        description:
          'The scope `audit` opens those of the own tenant, `operate` those of every tenant and roster. Recorded as `access.audit` in the outbox of the own tenant.',
        parameters: [
          query('tenant', 'Tenant of the events; default: the roster of `zone`.', like(OUTBOX_OWNER)),
          query('zone', 'Zone of the Gate or Roster; default: the first zone that the token may see.'),
          query('after', 'Returns events after this position.', whole(0)),
          query('limit', 'Most events of one answer.', whole(1)),
        ],
        responses: {
          ...success('Events, oldest first', json('OutboxPage')),
          ...errors([...identified, 'field_invalid', 'field_missing', 'zone_unserved', 'audit_unavailable']),
        },
      },
    },
  };
}
