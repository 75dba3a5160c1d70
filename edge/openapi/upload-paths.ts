import { UPLOAD_ID } from '../../shared/jobs/paths.ts';
import { transcriptFormats } from '../../shared/jobs/upload-contract.ts';
import { USAGE_AFTER } from '../jobs/list-usage.ts';
import { MONTH } from '../ledger/usage.ts';
import { idempotencyKey, inPath, json, query, requestId, schema, success, text } from './parts.ts';
import { allowance, errors, identified } from './refusals.ts';
import { like, oneOf, whole } from './values.ts';

const always = [...identified, 'uploads_closed', 'uploads_unavailable', 'storage_unavailable'] as const;
/** Refusals of calls that make something. */
const making = ['deadline_passed', 'idempotency_key_running', 'idempotency_key_reused', 'upload_exists'] as const;
const about = [...always, 'upload_unknown'] as const;
const booking = [
  ...identified,
  'field_invalid',
  'json_invalid',
  'body_too_large',
  'client_slow',
  'audit_unavailable',
] as const;
const id = inPath('name', 'Id of the upload', like(UPLOAD_ID));

/** Files that are sent to storage and worked on in their turn. */
export function uploadPaths() {
  return {
    '/v1/jobs/replay': {
      post: {
        operationId: 'replayJobs',
        summary: 'Requeues dead jobs',
        parameters: [query('zone', 'Zone of the jobs; default: all zones.')],
        responses: {
          ...success('Numbers of jobs, by zone', json('ReplayedJobs')),
          ...errors([...always, 'zone_unserved']),
        },
      },
    },
    '/v1/usage': {
      get: {
        operationId: 'listUsage',
        summary: 'Usage of all tenants in a month, by home zone and pool; for operators',
        description:
          'Served requests and seconds of audio, in pages of 100 tenants of a zone; a page may be empty. Scope `operate`.',
        parameters: [
          query('month', 'Month in UTC, as `2026-11`; default: the current one.', like(MONTH)),
          query('after', '`next` of the page before.', like(USAGE_AFTER)),
        ],
        responses: {
          ...success('Usage, by tenant and pool', json('UsageList')),
          ...errors([...identified, 'field_invalid', 'zone_unserved', 'audit_unavailable']),
        },
      },
      post: {
        operationId: 'bookUsage',
        summary: 'Books the usage of an upload, reported by the functions with a token of their own',
        requestBody: { required: true, content: { 'application/json': schema('UploadUsage') } },
        responses: {
          ...success('The usage is booked, now or by an earlier call', json('BookedUsage')),
          ...errors([...booking]),
        },
      },
    },
    '/v1/uploads': {
      get: {
        operationId: 'listUploads',
        summary: 'Uploads, newest first',
        parameters: [
          query('after', 'Returns uploads after this one.', like(UPLOAD_ID)),
          query('limit', 'Page size.', whole(1)),
        ],
        responses: { ...success('Uploads', json('UploadList')), ...errors([...always, 'field_invalid']) },
      },
      post: {
        operationId: 'createUpload',
        summary: 'Creates an upload: the address for one file, and the key to seal it to',
        description: 'Sealed files are written as `shared/seal/PROTOCOL.md` §10 says.',
        parameters: [idempotencyKey],
        requestBody: { required: true, content: { 'application/json': schema('UploadRequest') } },
        responses: {
          '201': { description: 'The grant', headers: requestId, content: json('UploadGrant') },
          ...errors([
            ...always,
            ...allowance,
            ...making,
            'field_invalid',
            'field_missing',
            'json_invalid',
            'body_too_large',
            'client_slow',
            'sealing_required',
            'model_unknown',
            'model_unfit',
            'language_unknown',
            'language_needed',
            'language_forbidden',
            'residency_mismatch',
            'uploads_waiting',
            'uploads_bytes',
            'upload_too_large',
            'callback_invalid',
          ]),
        },
      },
    },
    ...uploadByIdPaths(),
  };
}

/** One upload, by its id. */
function uploadByIdPaths() {
  return {
    '/v1/uploads/{name}': {
      get: {
        operationId: 'getUpload',
        summary: 'Progress of an upload',
        parameters: [id],
        responses: { ...success('The upload', json('Upload')), ...errors(about) },
      },
      delete: {
        operationId: 'deleteUpload',
        summary: 'Cancels an upload; deletes the files of one that has ended',
        parameters: [id],
        responses: { ...success('The upload', json('Upload')), ...errors([...about, ...allowance, 'deadline_passed']) },
      },
    },
    '/v1/uploads/{name}/events': {
      get: {
        operationId: 'followUpload',
        summary: 'Changes as server-sent events',
        parameters: [id],
        responses: {
          ...success('Events `change`, then `end`; their data is an upload', { 'text/event-stream': text }),
          ...errors(about),
        },
      },
    },
    '/v1/uploads/{name}/rerun': {
      post: {
        operationId: 'rerunUpload',
        summary: 'Runs an upload again while its audio is stored',
        parameters: [id],
        responses: {
          ...success('The upload', json('Upload')),
          ...errors([...about, ...allowance, 'deadline_passed', 'upload_status_wrong', 'upload_audio_gone']),
        },
      },
    },
    '/v1/uploads/{name}/transcript': {
      get: {
        operationId: 'readTranscript',
        summary: 'Transcript of a finished upload',
        parameters: [id, query('format', 'Default `json`.', oneOf(transcriptFormats))],
        responses: {
          ...success('The transcript', {
            ...json('VerboseTranscription'),
            'text/plain': text,
            'application/x-subrip': text,
            'text/vtt': text,
          }),
          ...errors([
            ...about,
            ...allowance,
            'sealing_required',
            'field_invalid',
            'language_forbidden',
            'residency_mismatch',
            'upload_status_wrong',
            'transcript_gone',
            'no_pool',
            'pool_busy',
            'pool_lost',
            'seal_broken',
            'engine_failed',
            'deadline_passed',
          ]),
        },
      },
    },
  };
}
