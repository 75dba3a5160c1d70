import { z } from 'zod';
import { datatypes } from '../../shared/kserve/datatype.ts';
import { TENSORS_MAX } from '../../shared/kserve/infer-request.ts';
import { INFER_NAME_CHARACTERS } from '../../shared/kserve/limits.ts';
import { modelMetadata, serverMetadata } from '../../shared/kserve/metadata.ts';
import { PARAMETERS_MAX } from '../../shared/kserve/parameters.ts';
import { statisticsMessage } from '../../shared/kserve/statistics.ts';
import { DIMENSIONS_MAX } from '../../shared/kserve/tensor-message.ts';
import { oneOf, output, text, whole } from './values.ts';

// The readers count arrays before they look into them, which their JSON Schema cannot show: what callers send is
// described here.
const longest = INFER_NAME_CHARACTERS;
const scalar = { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }] };
const parameters = (refused: readonly string[], properties: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: scalar,
  propertyNames: { not: { enum: refused } },
  maxProperties: PARAMETERS_MAX,
});
const sharedMemory = ['region', 'byte_size', 'offset'].map((part) => `shared_memory_${part}`);
const few = (items: object, most: number) => ({ type: 'array', items, maxItems: most });

/** JSON carries no tensor of these types. */
const binaryOnly: readonly string[] = ['FP16', 'BF16'];
const input = {
  type: 'object',
  properties: {
    name: text(1, longest),
    shape: few(whole(0), DIMENSIONS_MAX),
    datatype: oneOf(Object.keys(datatypes).filter((name) => !binaryOnly.includes(name))),
    data: { type: 'array', description: 'Elements in row-major order, flat or nested; as many as `shape` says' },
    parameters: parameters([...sharedMemory, 'classification', 'binary_data_size']),
  },
  required: ['name', 'shape', 'datatype', 'data'],
};
const requestedOutput = {
  type: 'object',
  properties: {
    name: text(1, longest),
    parameters: parameters([...sharedMemory, 'classification'], { binary_data: { type: 'boolean' } }),
  },
  required: ['name'],
};
const sequence = {
  sequence_id: { anyOf: [text(0, longest), whole(0)], description: 'Empty or 0: not part of a sequence' },
  sequence_start: { type: 'boolean' },
  sequence_end: { type: 'boolean' },
  priority: whole(0),
  timeout: { ...whole(0), description: 'Microseconds that the request may wait for the engine' },
  binary_data_output: { type: 'boolean' },
};
const inferRequest = {
  type: 'object',
  properties: {
    id: text(0, longest),
    inputs: { ...few(input, TENSORS_MAX), minItems: 1 },
    outputs: few(requestedOutput, TENSORS_MAX),
    parameters: parameters(['headers'], sequence),
  },
  required: ['inputs'],
};

const outputTensor = z.object({
  name: z.string(),
  datatype: z.string(),
  shape: z.array(z.number().int()),
  data: z.array(z.unknown()).optional(),
  parameters: z.record(z.string(), z.unknown()).optional().describe('`binary_data_size` of a binary tensor'),
});
const inferAnswer = z.object({
  id: z.string().optional(),
  model_name: z.string(),
  model_version: z.string().optional(),
  parameters: z.record(z.string(), z.unknown()).optional(),
  outputs: z.array(outputTensor),
});

/** Names of a generation request that callers cannot set, at its top and in its parameters. */
const reserved = [...Object.keys(sequence), 'headers'];
const unreserved = { not: { anyOf: [{ enum: reserved }, { pattern: '^triton_' }] } };
const generateRequest = {
  type: 'object',
  properties: { parameters: { type: 'object', propertyNames: unreserved } },
  propertyNames: unreserved,
  maxProperties: TENSORS_MAX,
};

/** Messages of `/v2` in JSON. */
export const kserveSchemas = {
  KserveServer: output(serverMetadata),
  KserveModel: output(modelMetadata),
  KserveStatistics: output(statisticsMessage),
  KserveDocument: { type: 'object' },
  KserveInferRequest: inferRequest,
  KserveInferAnswer: output(inferAnswer),
  KserveGenerateRequest: generateRequest,
  KserveError: output(z.object({ error: z.string() })),
};
