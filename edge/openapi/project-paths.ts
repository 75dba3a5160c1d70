import { PROJECT_DOCUMENTS_MAX, PROJECT_SEGMENTS_MAX } from '../../shared/jobs/limits.ts';
import { PROJECT_ID } from '../../shared/jobs/project-id.ts';
import { text as anyText, bytes, idempotencyKey, inPath, json, query, requestId, schema, success } from './parts.ts';
import { errors, identified } from './refusals.ts';
import { like, whole } from './values.ts';

const always = [...identified, 'uploads_closed', 'uploads_unavailable', 'storage_unavailable'] as const;
const allowance = ['allowance_requests', 'allowance_concurrent', 'allowance_seconds', 'audit_unavailable'] as const;
/** Refusals of calls that make something. */
const making = ['deadline_passed', 'idempotency_key_running', 'idempotency_key_reused'] as const;
const about = [...always, 'project_unknown'] as const;
const text = ['text_empty', 'text_invalid', 'text_too_long', 'sealing_required'] as const;
const body = ['field_invalid', 'field_missing', 'json_invalid', 'body_too_large', 'client_slow'] as const;

const id = inPath('name', 'Id of the project', like(PROJECT_ID));
const document = inPath('document', 'Number of the document', whole(0, PROJECT_DOCUMENTS_MAX - 1));
const segment = inPath('segment', 'Its number in its document', whole(0, PROJECT_SEGMENTS_MAX - 1));

const opened = [
  ...about,
  ...allowance,
  'sealing_required',
  'document_unknown',
  'project_status_wrong',
  'speech_gone',
  'residency_mismatch',
  'no_pool',
  'pool_busy',
  'pool_lost',
  'seal_broken',
  'engine_failed',
  'deadline_passed',
] as const;

/** Text that is spoken, document by document. */
export function projectPaths() {
  return {
    '/v1/projects': {
      get: {
        operationId: 'listProjects',
        summary: 'Text projects, newest first',
        parameters: [
          query('after', 'Read on after this project.', like(PROJECT_ID)),
          query('limit', 'At most so many.', whole(1)),
        ],
        responses: { ...success('Projects', json('ProjectList')), ...errors([...always, 'field_invalid']) },
      },
      post: {
        operationId: 'createProject',
        summary: 'Text that is to be spoken: documents of blocks of segments',
        description:
          'Text that is sent here is sealed before it is stored. With `sealed`, documents are written by their owner as `shared/seal/PROTOCOL.md` §10 says, where the answer tells.',
        parameters: [idempotencyKey],
        requestBody: { required: true, content: { 'application/json': schema('ProjectRequest') } },
        responses: {
          '201': { description: 'The project', headers: requestId, content: json('MadeProject') },
          ...errors([
            ...always,
            ...allowance,
            ...making,
            ...body,
            ...text,
            'model_unknown',
            'model_unfit',
            'language_unknown',
            'language_forbidden',
            'residency_mismatch',
            'uploads_waiting',
            'callback_invalid',
          ]),
        },
      },
    },
    '/v1/projects/{name}': {
      get: {
        operationId: 'getProject',
        summary: 'How far a project is, by document and block',
        parameters: [id],
        responses: { ...success('The project', json('Project')), ...errors(about) },
      },
      delete: {
        operationId: 'deleteProject',
        summary: 'Stops a project and deletes what there is of it',
        parameters: [id],
        responses: {
          ...success('The project', json('Project')),
          ...errors([...about, ...allowance, 'deadline_passed']),
        },
      },
    },
    '/v1/projects/{name}/events': {
      get: {
        operationId: 'followProject',
        summary: 'The same as it changes',
        parameters: [id],
        responses: {
          ...success('Events `change`, then `end`; their data is a project', {
            'text/event-stream': anyText,
          }),
          ...errors(about),
        },
      },
    },
    '/v1/projects/{name}/rerun': {
      post: {
        operationId: 'rerunProject',
        summary: 'Does again what failed; what is spoken stays',
        parameters: [id],
        responses: {
          ...success('The project', json('Project')),
          ...errors([...about, ...allowance, 'deadline_passed', 'project_status_wrong', 'upload_audio_gone']),
        },
      },
    },
    ...documentPaths(),
  };
}

/** Sound, manifest and segments of the documents of a project. */
function documentPaths() {
  return {
    '/v1/projects/{name}/documents/{document}/audio': {
      get: {
        operationId: 'readProjectAudio',
        summary: 'The sound of a document: one WAV file, 16 kHz, 16 bits, one channel',
        parameters: [id, document],
        responses: {
          ...success('The sound', { 'audio/wav': bytes }),
          ...errors(opened),
        },
      },
    },
    '/v1/projects/{name}/documents/{document}/manifest': {
      get: {
        operationId: 'readProjectManifest',
        summary: 'Where in the sound each segment is',
        parameters: [id, document],
        responses: { ...success('The manifest', json('ProjectManifest')), ...errors(opened) },
      },
    },
    '/v1/projects/{name}/documents/{document}/segments/{segment}': {
      put: {
        operationId: 'editProjectSegment',
        summary: 'Another text for one segment: only that one is synthesised again',
        parameters: [id, document, segment],
        requestBody: { required: true, content: { 'application/json': schema('SegmentRequest') } },
        responses: {
          '202': { description: 'The project', headers: requestId, content: json('Project') },
          ...errors([
            ...about,
            ...allowance,
            ...body,
            ...text,
            'deadline_passed',
            'document_unknown',
            'segment_unknown',
            'edition_passed',
            'project_status_wrong',
            'envelope_invalid',
          ]),
        },
      },
    },
  };
}
