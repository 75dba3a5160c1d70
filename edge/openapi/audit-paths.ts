import { json, query, requestId, schema, success } from './parts.ts';
import { errors, identified } from './refusals.ts';

const always = [...identified, 'audit_closed', 'audit_unreachable', 'zone_unserved'] as const;
const zone = query('zone', 'Whose log; by default the home of the token.');

/** What a tenant can take out of the audit log. */
export function auditPaths() {
  return {
    '/v1/audit/exports': {
      get: {
        operationId: 'listAuditExports',
        summary: 'Exports, newest first',
        parameters: [zone],
        responses: { ...success('Exports', json('AuditExportList')), ...errors(always) },
      },
      post: {
        operationId: 'createAuditExport',
        summary: 'A bundle of the entries of the tenant, which can be verified without us',
        description:
          'Making it is an entry of the log itself, the last one in the bundle: between it and the first there is none ' +
          'that is not there. `verify.mjs` and `verify.html` in the bundle verify it offline.',
        requestBody: { required: true, content: { 'application/json': schema('AuditExportRequest') } },
        responses: {
          '202': { description: 'It is on record and is being made', headers: requestId, content: json('AuditExport') },
          ...errors([
            ...always,
            'field_invalid',
            'field_missing',
            'json_invalid',
            'body_too_large',
            'client_slow',
            'exports_open',
            'audit_unavailable',
          ]),
        },
      },
    },
    '/v1/audit/exports/{name}': {
      get: {
        operationId: 'getAuditExport',
        summary: 'An export and its files; or, with /files/ and a path behind the id, one of them',
        parameters: [
          {
            name: 'name',
            in: 'path',
            required: true,
            description: 'Id of the export, or `{id}/files/{path}` with slashes as they are',
            schema: { type: 'string' },
          },
        ],
        responses: {
          ...success('The export, or the file', {
            ...json('AuditExport'),
            'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
          }),
          ...errors([...always, 'export_unknown', 'audit_unavailable']),
        },
      },
    },
    '/v1/audit/stream': {
      get: {
        operationId: 'streamAuditLog',
        summary: 'The entries of the tenant as they come into the log, from any place of it on',
        description:
          'One CloudEvent (1.0) a line, or server-sent events where `accept` asks for those. The cursor is the place in ' +
          'the log, `data.index`: go on with `from` one higher, or with `last-event-id`. Empty lines say that nothing is new.',
        parameters: [
          zone,
          query('from', 'Place in the log to begin at, by default 0.'),
          query('follow', '`false`: ends where the log does.'),
        ],
        responses: {
          ...success('Entries', {
            'application/x-ndjson': schema('AuditStreamed'),
            'text/event-stream': { schema: { type: 'string' } },
          }),
          ...errors([...always, 'field_invalid']),
        },
      },
    },
  };
}
