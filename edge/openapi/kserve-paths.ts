import { headerLengthField } from '../../shared/kserve/body.ts';
import { INFER_NAME_CHARACTERS } from '../../shared/kserve/limits.ts';
import type { Reason } from '../../shared/refusal.ts';
import { bytes, hint, inPath, json, namedModel, requestClass, requestId, success, text } from './parts.ts';
import { allowance, errors, identified, routed } from './refusals.ts';
import { text as characters, like } from './values.ts';

const calling = [
  ...identified,
  'sealing_required',
  ...allowance,
  'residency_mismatch',
  'model_unknown',
  'version_unknown',
  'field_invalid',
  'tensors_invalid',
  'tensors_unsupported',
  'tensors_too_large',
  'client_slow',
  ...routed,
] as const satisfies readonly Reason[];

const refused = (...reasons: readonly Reason[]) => errors(reasons, 'KserveError');
const empty = (description: string) => ({ description, headers: requestId });

const name = characters(1, INFER_NAME_CHARACTERS);
const digits = like(/^[0-9]{1,15}$/);
const version = inPath('version', 'Number of the version', digits);
const parameters = [
  hint('x-auricle-session', 'Name of the calling process: sequences of other sessions are other sequences.', name),
  hint('x-auricle-sequence', 'The same as `sequence_id`; needed if that is behind the first MiB of a body.', name),
  requestClass,
];
const headerLength = hint(
  headerLengthField,
  'Bytes of the body that are JSON; binary tensors follow. 0: the body is the one input of the namedModel, raw.',
  digits,
);

const packed = 'The body may have the `content-encoding` `gzip` or `deflate`.';

const describes = (summary: string, schema: string) => ({
  get: {
    summary,
    parameters,
    responses: { ...success('As the engine reports it', json(schema)), ...refused(...calling) },
  },
});
const generates = (summary: string, content: object) => ({
  post: {
    summary,
    description: packed,
    parameters,
    requestBody: { required: true, content: json('KserveGenerateRequest') },
    responses: { ...success('Outputs of the model by name', content), ...refused(...calling) },
  },
});

const infer = {
  post: {
    summary: 'Computes outputs of tensors: JSON, or JSON with binary data behind it',
    description: packed,
    parameters: [...parameters, headerLength],
    requestBody: {
      required: true,
      content: { ...json('KserveInferRequest'), 'application/octet-stream': bytes },
    },
    responses: {
      ...success('The outputs, in the requested form', {
        ...json('KserveInferAnswer'),
        'application/octet-stream': bytes,
      }),
      ...refused(...calling, 'hints_conflict', 'sequence_unknown', 'sequence_open', 'timeout_passed'),
    },
  },
};

const ready = {
  get: {
    summary: 'The model can be used now, in a zone of the token',
    responses: { ...refused(...calling), '200': empty('It can.'), '400': empty('It cannot.') },
  },
};

/** Operations of a model by what stands behind its address. */
const operations: Readonly<Record<string, readonly [id: string, path: Readonly<Record<string, object>>]>> = {
  '': ['Metadata', describes('Inputs and outputs of a model', 'KserveModel')],
  '/ready': ['Ready', ready],
  '/config': ['Config', describes('Configuration of a model; for operators', 'KserveDocument')],
  '/stats': ['Statistics', describes('Counters of one engine that serves a model; for operators', 'KserveStatistics')],
  '/infer': ['Infer', infer],
  '/generate': ['Generate', generates("Triton's generate extension", json('KserveDocument'))],
  '/generate_stream': ['GenerateStream', generates('The same as server-sent events', { 'text/event-stream': text })],
};

/** The Open Inference Protocol, for Triton's clients. */
export function kservePaths(): Record<string, unknown> {
  const described = Object.entries(operations).flatMap(([suffix, [id, path]]) => [
    [`/v2/models/{name}${suffix}`, named(`kserve${id}`, path, [namedModel])],
    [`/v2/models/{name}/versions/{version}${suffix}`, named(`kserve${id}OfVersion`, path, [namedModel, version])],
  ]);
  return { ...serverPaths(), ...Object.fromEntries(described) };
}

/** Gives operations an id, and the parameters of the address before their own. */
const named = (operationId: string, path: Readonly<Record<string, object>>, address: readonly object[]) =>
  Object.fromEntries(
    Object.entries(path).map(([method, operation]) => {
      const own = 'parameters' in operation ? (operation.parameters as readonly object[]) : [];
      return [method, { operationId, ...operation, parameters: [...address, ...own] }];
    }),
  );

function serverPaths() {
  const about = (operationId: string, summary: string, responses: object) => ({
    get: { operationId, summary, security: [], responses: { ...responses, ...errors([], 'KserveError') } },
  });
  return {
    '/v2': about('kserveServer', 'Name and extensions', success('The server', json('KserveServer'))),
    '/v2/health/live': about('kserveLive', 'The edge is up', { '200': empty('It is.') }),
    '/v2/health/ready': about('kserveServerReady', 'Agents serve models', {
      '200': empty('They do.'),
      '400': empty('No agent serves a model.'),
    }),
  };
}
