import { cursor } from '../../shared/audit/bundle/cursor.ts';
import { SEARCH_HITS_MAX } from '../../shared/audit/privacy.ts';
import { searchQuery } from '../audit/search.ts';
import { bytes, hint, inPath, json, needed, query, requestId, schema, success, text } from './parts.ts';
import { errors, identified } from './refusals.ts';
import { input, like, oneOf, percentEncoded, whole } from './values.ts';

const always = [...identified, 'audit_closed', 'audit_unreachable', 'zone_unserved'] as const;
const sent = ['field_invalid', 'field_missing', 'json_invalid', 'body_too_large', 'client_slow'] as const;
const zone = query('zone', 'Zone of the log; default: the home zone of the token.');

/** Exports, holds and erasures of a tenant's audit log. */
export function auditPaths() {
  return {
    ...privacyPaths(),
    '/v1/audit/health': {
      get: {
        operationId: 'lookAtAuditHealth',
        summary: 'Health of the log of a zone, and the events that wait for it',
        description: 'Names and numbers. The scope `operate` adds the roster of the zone.',
        parameters: [needed(query('zone', 'Zone of the log.'))],
        responses: {
          ...success('The health of the log', json('AuditHealth')),
          ...errors([...always, 'field_missing']),
        },
      },
    },
    '/v1/audit/gaps': {
      get: {
        operationId: 'listAuditGaps',
        summary: 'Gaps of the log of a zone, accepted ones included; for operators',
        description:
          'Events that never reached the log, and uploads and documents without an end after two days. ' +
          'Scope `operate`.',
        parameters: [zone],
        responses: {
          ...success('Gaps, oldest first', json('AuditGapList')),
          ...errors([...always, 'audit_unavailable']),
        },
      },
    },
    '/v1/audit/gaps/accept': {
      post: {
        operationId: 'acceptAuditGap',
        summary: 'Accepts a gap of the log, with a reason; for operators',
        description:
          'The acceptance is an entry of the log (`gap.accept`) with producer, epoch, range, reason and operator. Health and ' +
          'verification show the gap as accepted from then on. Accepting it again changes nothing. Scope `operate`.',
        requestBody: { required: true, content: { 'application/json': schema('AuditGapAcceptance') } },
        responses: {
          ...success('The gap', json('AuditGap')),
          ...errors([...always, ...sent, 'gap_unknown', 'audit_unavailable']),
        },
      },
    },
    ...exportPaths(),
  };
}

/** Exports of a log, and its entries as they are appended. */
function exportPaths() {
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
        summary: 'Creates a bundle of the entries of the tenant, verifiable offline',
        description:
          'The export is itself an entry of the log, the last one in the bundle; no entry between it and the first is ' +
          'missing. `year` selects the log of that year; for one that has ended the bundle goes up to its end, with proof ' +
          'of the entry that came next. `verify.mjs` and `verify.html` in the bundle verify it offline.',
        requestBody: { required: true, content: { 'application/json': schema('AuditExportRequest') } },
        responses: {
          '202': {
            description: 'The export is recorded and running',
            headers: requestId,
            content: json('AuditExport'),
          },
          ...errors([
            ...always,
            'field_invalid',
            'field_missing',
            'json_invalid',
            'body_too_large',
            'client_slow',
            'exports_open',
            'exports_spent',
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
            description: 'Id of the export, or `{id}/files/{path}` with unescaped slashes',
            schema: { type: 'string' },
          },
        ],
        responses: {
          ...success('The export, or the file', {
            ...json('AuditExport'),
            'application/octet-stream': bytes,
          }),
          ...errors([...always, 'export_unknown', 'audit_unavailable']),
        },
      },
    },
    '/v1/audit/stream': {
      get: {
        operationId: 'streamAuditLog',
        summary: 'Streams the entries of the tenant from a position of the log',
        description:
          'One CloudEvent (1.0) a line, or server-sent events by `accept`. The cursor is the position in ' +
          'the log of a year, `YEAR-INDEX`: resume with `from` after the last `data.index`, or with `last-event-id`. At the ' +
          'end of a year the next one follows. A position past the end is refused. Empty lines are keepalives.',
        parameters: [
          zone,
          query(
            'from',
            'First position, `2026-500000`; a number alone is a position of the newest log. Default: the start of the newest log.',
            like(cursor),
          ),
          query('follow', '`false`: the stream ends at the end of the log.', oneOf(['true', 'false'])),
          hint('last-event-id', 'Position of the last entry that the client has; overrides `from`.', like(cursor)),
        ],
        responses: {
          ...success('Entries', {
            'application/x-ndjson': schema('AuditStreamed'),
            'text/event-stream': text,
          }),
          ...errors([...always, 'field_invalid', 'allowance_concurrent']),
        },
      },
    },
  };
}

const fields = searchQuery.shape;
const everyZone = query('zone', 'Zone of the log; default: all zones of the token.');

/** Erasing, holding and finding what the audit log hides. */
function privacyPaths() {
  return {
    '/v1/audit/erasures': {
      get: {
        operationId: 'listAuditErasures',
        summary: 'Erasures that wait for a hold or a law',
        parameters: [everyZone],
        responses: { ...success('Erasures', json('AuditErasureList')), ...errors(always) },
      },
      post: {
        operationId: 'eraseAuditSubject',
        summary: 'Erases the hidden values of a subject',
        description:
          'Destroys the keys of its records so far. No entry changes and every proof holds. Records under a hold or a ' +
          'retention law are erased when it ends; the log says either. Repeating changes nothing. Scope `compliance`.',
        requestBody: { required: true, content: { 'application/json': schema('AuditErasureRequest') } },
        responses: {
          ...success('Results by zone', json('AuditErased')),
          ...errors([...always, ...sent, 'erasures_waiting', 'audit_unavailable']),
        },
      },
    },
    '/v1/audit/holds': {
      get: {
        operationId: 'listAuditHolds',
        summary: 'Legal holds',
        parameters: [everyZone],
        responses: { ...success('Holds', json('AuditHoldList')), ...errors(always) },
      },
      post: {
        operationId: 'setAuditHold',
        summary: 'Sets a legal hold on the hidden values of a subject, or of the whole tenant',
        description: 'Neither an erasure nor the end of retention destroys held values. Scope `compliance`.',
        requestBody: { required: true, content: { 'application/json': schema('AuditHoldRequest') } },
        responses: {
          ...success('The hold, by zone', json('AuditHoldList')),
          ...errors([...always, ...sent, 'holds_most', 'audit_unavailable']),
        },
      },
    },
    '/v1/audit/holds/{name}/release': {
      post: {
        operationId: 'releaseAuditHold',
        summary: 'Ends a hold',
        parameters: [inPath('name', 'Id of the hold', { type: 'string', format: 'uuid' })],
        requestBody: { required: true, content: { 'application/json': schema('AuditReleaseRequest') } },
        responses: {
          ...success('The zones that held it', json('AuditReleased')),
          ...errors([...always, ...sent, 'hold_unknown', 'audit_unavailable']),
        },
      },
    },
    '/v1/audit/search': {
      get: {
        operationId: 'searchAuditLog',
        summary: 'Searches entries of the tenant by request, subject, model, day and type',
        description:
          '`GET /v1/audit/log/{zone}/{year}/receipt/{index}` proves that a hit is in the log. Entries from ' +
          '`indexed` on are not in the index yet. `after` continues in one `zone`; an answer with `next` may have fewer hits ' +
          'than `limit`, or none.',
        parameters: [
          everyZone,
          query('request', 'Id of the request.', input(fields.request)),
          query('model', 'Name of the model.', input(fields.model)),
          query('day', 'Day (UTC): 2026-11-22.', input(fields.day)),
          query('type', 'Type of the entry: `inference.complete`, `export.create`, …', input(fields.type)),
          query('commitment', 'Commitment of the subject, as in the log.', input(fields.commitment)),
          hint('x-auricle-subject', 'Subject, the `sub` of its tokens, percent-encoded.', percentEncoded(256)),
          query('year', 'Year of the log that `index` refers to.', whole(1_000, 9_999)),
          query('index', 'Indexes of entries in that log, with commas, in place of a search.', input(fields.index)),
          query('disclose', '`true`: includes hidden values; the disclosure is recorded.', oneOf(['true', 'false'])),
          query('after', '`next` of the previous answer.', input(fields.after)),
          query('limit', 'Most hits of one answer.', whole(1, SEARCH_HITS_MAX)),
        ],
        responses: {
          ...success('Hits, by zone', json('AuditHits')),
          ...errors([...always, 'field_invalid', 'audit_unavailable', 'allowance_concurrent']),
        },
      },
    },
  };
}
