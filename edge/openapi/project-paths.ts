import { PROJECT_DOCUMENTS_MAX, PROJECT_SEGMENTS_MAX } from '../../shared/jobs/limits.ts';
import { PROJECT_ID } from '../../shared/jobs/project-id.ts';
import { text as anyText, bytes, idempotencyKey, inPath, json, query, requestId, schema, success } from './parts.ts';
import { allowance, errors, identified } from './refusals.ts';
import { like, whole } from './values.ts';

const always = [...identified, 'uploads_closed', 'uploads_unavailable', 'storage_unavailable'] as const;
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
          query('after', 'Returns projects after this one.', like(PROJECT_ID)),
          query('limit', 'Page size.', whole(1)),
        ],
        responses: { ...success('Projects', json('ProjectList')), ...errors([...always, 'field_invalid']) },
      },
      post: {
        operationId: 'createProject',
        summary: 'Creates a text project: documents of blocks of segments',
        description:
          'The edge seals text of the request before it is stored. With `sealed`, the client seals each document (`shared/seal/PROTOCOL.md` §10) and PUTs it to the returned address.',
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
            'language_needed',
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
        summary: 'Progress of a project, by document and block',
        parameters: [id],
        responses: { ...success('The project', json('Project')), ...errors(about) },
      },
      delete: {
        operationId: 'deleteProject',
        summary: 'Cancels a project and deletes its files',
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
        summary: 'Changes as server-sent events',
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
        summary: 'Runs failed documents again; finished audio stays',
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
        summary: 'The audio of a document: one WAV file, 16 kHz, 16 bits, one channel',
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
        summary: 'Position of each segment in the audio',
        parameters: [id, document],
        responses: { ...success('The manifest', json('ProjectManifest')), ...errors(opened) },
      },
    },
    '/v1/projects/{name}/documents/{document}/segments/{segment}': {
      put: {
        operationId: 'editProjectSegment',
        summary: 'Replaces the text of one segment, which alone is synthesised again',
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
