import { cursor } from '../../shared/audit/bundle/cursor.ts';
import { SEARCH_HITS_MAX } from '../../shared/audit/privacy.ts';
import { searchQuery } from '../audit/search.ts';
import { bytes, hint, inPath, json, needed, query, requestId, schema, success, text } from './parts.ts';
import { errors, identified } from './refusals.ts';
import { input, like, oneOf, percentEncoded, whole } from './values.ts';

const always = [...identified, 'audit_closed', 'audit_unreachable', 'zone_unserved'] as const;
const sent = ['field_invalid', 'field_missing', 'json_invalid', 'body_too_large', 'client_slow'] as const;
const zone = query('zone', 'Whose log; by default the home of the token.');

/** Exports, holds and erasures of a tenant's audit log. */
export function auditPaths() {
  return {
    ...privacyPaths(),
    '/v1/audit/health': {
      get: {
        operationId: 'lookAtAuditHealth',
        summary: 'How the log of a zone is doing, and what waits for it',
        description: 'Names and numbers. The scope `operate` adds the roster of the zone.',
        parameters: [needed(query('zone', 'Whose log.'))],
        responses: { ...success('How it is doing', json('AuditHealth')), ...errors([...always, 'field_missing']) },
      },
    },
    '/v1/audit/gaps': {
      get: {
        operationId: 'listAuditGaps',
        summary: 'Gaps of the log of a zone, accepted ones included; for operators',
        description:
          'Events that never reached the log, and uploads and documents that have begun and have no end after two days. ' +
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
          'The acceptance is an entry of the log (`gap.accept`) with producer, epoch, range, reason and who. Health and ' +
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
        summary: 'A bundle of the entries of the tenant, which can be verified without us',
        description:
          'Making it is an entry of the log itself, the last one in the bundle: between it and the first there is none ' +
          'that is not there. With `year` it is of the log of that year: of one that has ended up to its end, with what ' +
          'shows which entry came next. `verify.mjs` and `verify.html` in the bundle verify it offline.',
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
            description: 'Id of the export, or `{id}/files/{path}` with slashes as they are',
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
        summary: 'The entries of the tenant as they come into the log, from any place of it on',
        description:
          'One CloudEvent (1.0) a line, or server-sent events where `accept` asks for those. The cursor is the place in ' +
          'the log of a year, `YEAR-INDEX`: go on with `from` after the last `data.index`, or with `last-event-id`. At the ' +
          'end of a year it goes on with the next. A place past the end is refused. Empty lines: nothing is new.',
        parameters: [
          zone,
          query(
            'from',
            'Place to begin at, `2026-500000`; a number alone is one of the newest log. By default its beginning.',
            like(cursor),
          ),
          query('follow', '`false`: ends where the log does.', oneOf(['true', 'false'])),
          hint('last-event-id', 'Place of the last entry that the client has; it goes before `from`.', like(cursor)),
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

const asked = searchQuery.shape;
const everyZone = query('zone', 'Whose log; by default all of the token.');

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
        summary: 'Makes what the log hides about a subject unreadable for good',
        description:
          'Destroys the keys of its records up to now. No entry changes and every proof holds. What is held, or what a law ' +
          'wants kept, waits and is erased by itself; the log says either. Asking again changes nothing. Scope `compliance`.',
        requestBody: { required: true, content: { 'application/json': schema('AuditErasureRequest') } },
        responses: {
          ...success('What was done, by zone', json('AuditErased')),
          ...errors([...always, ...sent, 'erasures_waiting', 'audit_unavailable']),
        },
      },
    },
    '/v1/audit/holds': {
      get: {
        operationId: 'listAuditHolds',
        summary: 'Holds: what must not be erased',
        parameters: [everyZone],
        responses: { ...success('Holds', json('AuditHoldList')), ...errors(always) },
      },
      post: {
        operationId: 'setAuditHold',
        summary: 'Holds what the log hides about a subject, or about all of the tenant',
        description: 'While it is held, nobody erases it and no retention ends it. Scope `compliance`.',
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
          ...success('Where it was', json('AuditReleased')),
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
          '`indexed` on are not in the index yet. `after` goes on in one `zone`; an answer with `next` may have fewer hits ' +
          'than asked for, or none.',
        parameters: [
          everyZone,
          query('request', 'Id of the request.', input(asked.request)),
          query('model', 'Name of the model.', input(asked.model)),
          query('day', 'Day of UTC on which it happened: 2026-11-22.', input(asked.day)),
          query('type', 'Type of the entry: `inference.complete`, `export.create`, …', input(asked.type)),
          query('commitment', 'Whom it is about, as the log has it.', input(asked.commitment)),
          hint(
            'x-auricle-subject',
            'Whom it is about, as `sub` of its tokens says it, percent-encoded.',
            percentEncoded(256),
          ),
          query('year', 'Of the log whose entries `index` names.', whole(1_000, 9_999)),
          query('index', 'Places of entries in that log, with commas, in place of a search.', input(asked.index)),
          query('disclose', '`true`: what the entries hide, too; it goes on record.', oneOf(['true', 'false'])),
          query('after', '`next` of the answer before.', input(asked.after)),
          query('limit', 'Hits of one answer.', whole(1, SEARCH_HITS_MAX)),
        ],
        responses: {
          ...success('Hits, by zone', json('AuditHits')),
          ...errors([...always, 'field_invalid', 'audit_unavailable', 'allowance_concurrent']),
        },
      },
    },
  };
}
