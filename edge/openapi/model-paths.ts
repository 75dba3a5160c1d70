import type { Reason } from '../../shared/refusal.ts';
import { aliasName } from '../../shared/registry/registry.ts';
import { revisionDigest } from '../../shared/registry/revision.ts';
import { TORCHSERVE } from '../protocol/torchserve.ts';
import { moment } from '../registry/model-routes.ts';
import { inPath, json, model, query, requestId, schema, success } from './parts.ts';
import { errors, identified } from './refusals.ts';
import { input, like, whole } from './values.ts';

const registryRefusals = ['models_closed', 'models_unavailable'] as const;
const always = [...identified, ...registryRefusals, 'field_invalid'] as const;
const body = ['json_invalid', 'body_too_large', 'client_slow', 'audit_unavailable'] as const;

const revision = inPath('revision', 'Its digest', input(revisionDigest));
const at = query('at', 'State at that time: ISO 8601, or milliseconds since 1970.', input(moment));
const sent = (name: string) => ({ required: true, content: { 'application/json': schema(name) } });

/** Revisions of models, their five stages and what aliases name. For operators. */
export function modelPaths() {
  return {
    '/v1/release': {
      get: {
        operationId: 'showRelease',
        summary: 'The release map of each roster: which revisions answer',
        responses: { ...success('By zone', json('KnownReleases')), ...errors(identified) },
      },
      put: {
        operationId: 'takeRelease',
        summary: 'Stores a release map that the functions have signed',
        security: [],
        requestBody: sent('ReleaseRequest'),
        responses: {
          ...success('The generation that every roster has', json('ToldRelease')),
          ...errors([
            'token_invalid',
            'field_invalid',
            'json_invalid',
            'body_too_large',
            'client_slow',
            'models_unavailable',
          ]),
        },
      },
    },
    ...namePaths(),
    '/v1/models/{name}/revisions': {
      get: {
        operationId: 'showRevisions',
        summary: 'Revisions of a model with their stages, and its aliases',
        parameters: [model, at],
        responses: { ...success('The model', json('ModelState')), ...errors(always) },
      },
      post: {
        operationId: 'createRevision',
        summary: 'Registers a revision by the signature of its files',
        description: 'A sigstore bundle as OpenSSF model signing writes it, by a signer of this fleet.',
        parameters: [model],
        requestBody: sent('RevisionRequest'),
        responses: {
          '201': { description: 'The revision', headers: requestId, content: json('Revision') },
          ...errors([...always, ...body, 'signature_invalid', 'gate_closed']),
        },
      },
    },
    '/v1/models/{name}/revisions/{revision}': {
      get: {
        operationId: 'showRevision',
        summary: 'One revision, with the signature of its files',
        parameters: [model, revision],
        responses: { ...success('The revision', json('KeptRevision')), ...errors([...always, 'revision_unknown']) },
      },
    },
    '/v1/models/{name}/revisions/{revision}/evidence': {
      get: {
        operationId: 'showEvidence',
        summary: 'Live evidence of a revision, as its gate takes it, and its latency',
        parameters: [model, revision],
        responses: { ...success('Evidence', json('LiveEvidence')), ...errors([...always, 'revision_unknown']) },
      },
    },
    '/v1/models/{name}/revisions/{revision}/files': {
      get: {
        operationId: 'listModelFiles',
        summary: 'Files of a revision, and whether the store has them',
        parameters: [model, revision],
        responses: {
          ...success('The files', json('ModelFiles')),
          ...errors([...always, 'revision_unknown', 'model_files_missing']),
        },
      },
      post: {
        operationId: 'planModelFiles',
        summary: 'Lists the files of a revision and returns addresses for those that the store lacks',
        parameters: [model, revision],
        requestBody: sent('ModelFilesRequest'),
        responses: {
          ...success('State of each file', json('ModelFilePlan')),
          ...errors([...always, ...body, 'revision_unknown', 'model_files_invalid']),
        },
      },
    },
    ...tierPaths(),
    ...transitionPaths(),
  };
}

/** Names under which requests find models. */
function namePaths() {
  return {
    '/v1/names': {
      get: {
        operationId: 'listNames',
        summary: 'Names for models, of the fleet and of its tenants',
        responses: { ...success('Names', json('NameList')), ...errors([...identified, ...registryRefusals]) },
      },
      post: {
        operationId: 'setName',
        summary: 'Gives a name to another model than it names now, or removes it',
        requestBody: sent('NameRequest'),
        responses: {
          ...success('The name', json('Name')),
          ...errors([...always, ...body, 'alias_moved', 'gate_closed', 'model_unknown']),
        },
      },
    },
  };
}

/** Storage tiers. */
function tierPaths() {
  return {
    '/v1/models/{name}/tiers': {
      get: {
        operationId: 'showModelTiers',
        summary: 'Storage tiers of the files of each revision, and the decisions about them',
        parameters: [model],
        responses: { ...success('Revisions', json('ModelTiers')), ...errors(always) },
      },
    },
    '/v1/tiers': {
      get: {
        operationId: 'showTiers',
        summary: 'Files and monthly cost of each storage tier',
        responses: {
          ...success('Tiers', json('StoreTiers')),
          ...errors([...identified, 'models_closed', 'models_unavailable']),
        },
      },
    },
  };
}

/** Transitions of revisions, and the aliases of a model. */
function transitionPaths() {
  return {
    '/v1/models/{name}/transitions': {
      get: {
        operationId: 'listTransitions',
        summary: 'The log of a model: every entry, the oldest first',
        parameters: [model, query('after', 'Returns entries after this one.', whole(0, 999_999_999))],
        responses: { ...success('Entries', json('ModelLog')), ...errors(always) },
      },
      post: {
        operationId: 'createTransition',
        summary: 'A signed statement that moves a revision to another stage',
        description:
          'A DSSE envelope around an in-toto statement with the predicate `urn:auricle:gate:v1`. Evidence is judged again.',
        parameters: [model],
        requestBody: sent('TransitionRequest'),
        responses: {
          ...success('The revision has moved', json('Transition')),
          '202': {
            description: 'Another signature of the same statement is missing',
            headers: requestId,
            content: json('Transition'),
          },
          ...errors([
            ...[
              ...always,
              ...body,
              'signature_invalid',
              'revision_unknown',
              'stage_passed',
              'gate_closed',
              'model_files_missing',
              'model_archived',
            ],
            ...['sla_missed', 'rollout_held'],
          ] as const),
        },
      },
    },
    '/v1/models/{name}/transitions/{id}': {
      get: {
        operationId: 'showTransition',
        summary: 'One transition, with its signed statement and its signers',
        parameters: [model, inPath('id', 'SHA-256 of the signed statement, in hex', like(/^[0-9a-f]{64}$/))],
        responses: {
          ...success('The transition', json('KeptTransition')),
          ...errors([...always, 'transition_unknown']),
        },
      },
    },
    '/v1/models/{name}/aliases': {
      get: {
        operationId: 'listAliases',
        summary: 'The aliases of a model',
        parameters: [model, at],
        responses: { ...success('Aliases', json('AliasList')), ...errors(always) },
      },
    },
    '/v1/models/{name}/aliases/{alias}': {
      put: {
        operationId: 'moveAlias',
        summary: 'Moves an alias from the revision that it names now to another; also for a rollback',
        parameters: [
          model,
          inPath('alias', 'Name of the alias; `stable` serves requests that name no other', input(aliasName)),
        ],
        requestBody: sent('AliasRequest'),
        responses: {
          ...success('The alias', json('Alias')),
          ...errors([...always, ...body, 'alias_moved', 'revision_unknown', 'gate_closed', 'model_archived']),
        },
      },
    },
    ...versionPaths(),
  };
}

const version = inPath('version', 'Its number, from 1 in the order of registration, or its digest');

/**
 * The same routes in the words and with the errors of TorchServe's management API, whose clients take the
 * prefix as base URL.
 */
function versionPaths() {
  const refused = (...more: Reason[]) => errors([...always, 'model_unknown', ...more], 'TorchserveError');
  return {
    [`${TORCHSERVE}/models`]: {
      get: {
        operationId: 'torchserveListModels',
        summary: 'Registered models',
        parameters: [query('limit', 'Page size, at most 100.'), query('next_page_token', 'Start of the page.')],
        responses: { ...success('Models', json('TorchserveModels')), ...errors(always, 'TorchserveError') },
      },
    },
    [`${TORCHSERVE}/models/{name}`]: {
      get: {
        operationId: 'torchserveDescribeModel',
        summary: 'The default version: the revision of the alias `stable`',
        parameters: [model],
        responses: { ...success('One version', json('TorchserveVersions')), ...refused('revision_unknown') },
      },
    },
    [`${TORCHSERVE}/models/{name}/{version}`]: {
      get: {
        operationId: 'torchserveDescribeVersion',
        summary: 'One version, or `all`, with the agents that have it loaded',
        parameters: [model, version],
        responses: { ...success('Versions', json('TorchserveVersions')), ...refused('revision_unknown') },
      },
      delete: {
        operationId: 'torchserveUnregisterVersion',
        summary: 'Retires a revision that no alias names',
        parameters: [model, version],
        responses: {
          ...success('It is retired', json('TorchserveStatus')),
          ...refused('revision_unknown', 'gate_closed', 'stage_passed', 'audit_unavailable'),
        },
      },
    },
    [`${TORCHSERVE}/models/{name}/{version}/set-default`]: {
      put: {
        operationId: 'torchserveSetDefault',
        summary: 'Moves the alias `stable`; only to a revision of the stage full',
        parameters: [model, version],
        responses: {
          ...success('It serves all traffic', json('TorchserveStatus')),
          ...refused('revision_unknown', 'gate_closed', 'alias_moved', 'model_archived', 'audit_unavailable'),
        },
      },
    },
  };
}
