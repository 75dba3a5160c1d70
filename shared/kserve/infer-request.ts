import { z } from 'zod';
import { ok } from '../result.ts';
import { atMost } from './at-most.ts';
import { type Body, makeBody, splitBody, Tail } from './body.ts';
import { type Datatype, datatypes } from './datatype.ts';
import { fault, type Read } from './fault.ts';
import { parameters, type RequestParameters, requestParameters } from './parameters.ts';
import type { Tensor } from './tensor.ts';
import { readTensor, tensorJson, tensorMessage, tensorName } from './tensor-message.ts';

/** Inputs or outputs of one request; models have a few. */
export const TENSORS_MAX = 64;

export interface RequestedOutput {
  readonly name: string;
  readonly binary: boolean;
}

export interface InferRequest {
  readonly id?: string;
  readonly inputs: readonly Tensor[];
  /** Empty: every output of the model, in the form `binaryOutput` says. */
  readonly outputs: readonly RequestedOutput[];
  readonly binaryOutput: boolean;
  readonly parameters: RequestParameters;
}

const outputMessage = z.object({ name: tensorName, parameters: parameters.optional() });

/** Unknown members pass, as the protocol requires of servers; known ones must be valid. */
const inferRequestMessage = z.object({
  id: z.string().optional(),
  inputs: atMost(TENSORS_MAX, 'inputs', z.array(tensorMessage).min(1)),
  outputs: atMost(TENSORS_MAX, 'outputs', z.array(outputMessage)).optional(),
  parameters: requestParameters.optional(),
});

/** Reserved for meanings this implementation does not have: refused, because ignoring them would change the answer. */
const refusedTensorParameters: Record<string, string> = {
  shared_memory_region: 'shared memory is not supported',
  shared_memory_byte_size: 'shared memory is not supported',
  shared_memory_offset: 'shared memory is not supported',
  classification: 'the classification extension is not supported',
};

function refusedParameter(where: string, given: Record<string, unknown> | undefined): string | undefined {
  const name = Object.keys(given ?? {}).find((key) => Object.hasOwn(refusedTensorParameters, key));
  return name && `${where}: ${refusedTensorParameters[name]}`;
}

function readRequested(outputs: z.infer<typeof outputMessage>[], fallback: boolean): Read<RequestedOutput[]> {
  const requested: RequestedOutput[] = [];
  const names = new Set<string>();
  for (const { name, parameters: given } of outputs) {
    const refused = refusedParameter(`output '${name}'`, given);
    if (refused) return fault(refused);
    const binary = given?.binary_data ?? fallback;
    if (typeof binary !== 'boolean') return fault(`output '${name}': parameter 'binary_data' must be a boolean`);
    if (names.has(name)) return fault(`output '${name}' is requested twice`);
    names.add(name);
    requested.push({ name, binary });
  }
  return ok(requested);
}

/** Server side. Tensor bytes are windows into `body`. */
export function decodeInferRequest(body: Uint8Array, headerLength?: string | null): Read<InferRequest> {
  const split = splitBody(body, headerLength);
  if (!split.ok) return split;
  const parsed = inferRequestMessage.safeParse(split.value.json);
  if (!parsed.success) return fault(`invalid inference request: ${describe(parsed.error)}`);
  const message = parsed.data;
  const tail = new Tail(split.value.tail);
  const inputs: Tensor[] = [];
  const names = new Set<string>();
  for (const input of message.inputs) {
    const refused = refusedParameter(`input '${input.name}'`, input.parameters);
    if (refused) return fault(refused);
    if (names.has(input.name)) return fault(`input '${input.name}' is given twice`);
    names.add(input.name);
    const tensor = readTensor(input, tail);
    if (!tensor.ok) return tensor;
    inputs.push(tensor.value);
  }
  if (tail.left > 0) return fault(`${tail.left} bytes follow the last binary tensor`);
  const binaryOutput = message.parameters?.binary_data_output ?? false;
  const outputs = readRequested(message.outputs ?? [], binaryOutput);
  if (!outputs.ok) return outputs;
  return ok({
    ...(message.id !== undefined && { id: message.id }),
    inputs,
    outputs: outputs.value,
    binaryOutput,
    parameters: message.parameters ?? {},
  });
}

/** Client side: inputs travel as binary, and so do the outputs, unless `json` selects readable messages. */
export function encodeInferRequest(
  request: Pick<InferRequest, 'inputs'> & Partial<Omit<InferRequest, 'outputs'>> & { outputs?: readonly string[] },
  form: 'binary' | 'json' = 'binary',
): Read<Body> {
  const binary = form === 'binary';
  const inputs: string[] = [];
  for (const tensor of request.inputs) {
    const json = tensorJson(tensor, binary);
    if (!json.ok) return json;
    inputs.push(json.value);
  }
  const outputs = request.outputs?.map((name) => ({ name, parameters: { binary_data: binary } }));
  const given = { ...request.parameters, ...(binary && !outputs && { binary_data_output: true }) };
  const rest = JSON.stringify({
    ...(request.id !== undefined && { id: request.id }),
    ...(Object.keys(given).length > 0 && { parameters: given }),
    ...(outputs && { outputs }),
  });
  const json = `${rest === '{}' ? '{' : `${rest.slice(0, -1)},`}"inputs":[${inputs.join(',')}]}`;
  return ok(makeBody(json, binary ? request.inputs.map(({ bytes }) => bytes) : []));
}

/**
 * The raw form (header length 0): the whole body is the one input. At most one dimension may be free; BYTES is taken as
 * a single element without its length.
 */
export function decodeRawRequest(
  body: Uint8Array,
  input: { name: string; datatype: Datatype; shape: readonly number[] },
): Read<InferRequest> {
  const { name, datatype } = input;
  const width = datatypes[datatype].bytes;
  const free = input.shape.filter((dim) => dim < 0).length;
  if (free > 1) return fault(`raw input '${name}' has more than one free dimension`);
  const known = input.shape.reduce((product, dim) => (dim < 0 ? product : product * dim), 1);
  const elements = width === 0 ? 1 : body.byteLength / width;
  const dim = elements / known;
  if (!Number.isSafeInteger(dim) || (free === 0 && dim !== 1)) {
    return fault(`raw input '${name}': ${body.byteLength} bytes do not fill the shape [${input.shape}] of ${datatype}`);
  }
  const shape = input.shape.map((size) => (size < 0 ? dim : size));
  let bytes = body;
  if (width === 0) {
    bytes = new Uint8Array(4 + body.byteLength);
    new DataView(bytes.buffer).setUint32(0, body.byteLength, true);
    bytes.set(body, 4);
  }
  return ok({ inputs: [{ name, datatype, shape, bytes }], outputs: [], binaryOutput: true, parameters: {} });
}

/** The first complaint of a schema, with its place; never the offending value. */
export function describe(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue ? `${issue.path.join('.') || 'body'}: ${issue.message}` : 'unreadable';
}
