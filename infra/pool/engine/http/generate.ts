import { fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { describe } from '../../../../shared/kserve/infer-request.ts';
import { bytesFromJson, jsonFromBytes } from '../../../../shared/kserve/json-data.ts';
import { parameterValue, type RequestParameters, requestParameters } from '../../../../shared/kserve/parameters.ts';
import { elementCount, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message } from '../../models/config/schema.ts';
import { toCall } from '../model/check-request.ts';
import type { Served } from '../model/served.ts';
import { refuse } from '../refuse.ts';
import type { Repository } from '../repository/repository.ts';
import { type Answer, refused } from './answer.ts';
import type { EngineRequest } from './engine-request.ts';

/**
 * Request of Triton's generate extension: a JSON object whose members are input tensors by name; all others
 * are parameters. The answer is one object with the outputs by name. Models here answer once, so a stream has
 * one event.
 */
interface Generate {
  readonly id: string;
  readonly inputs: readonly Tensor[];
  readonly parameters: RequestParameters;
}

/** Returns a shape with free dimensions of 1, except the innermost, which takes the remaining elements. */
function shapeFor(dims: readonly number[], count: number): number[] | undefined {
  const fixed = dims.reduce((product, dim) => (dim === -1 ? product : product * dim), 1);
  const left = count / fixed;
  const innermost = dims.lastIndexOf(-1);
  if (!Number.isInteger(left) || (innermost < 0 && left !== 1)) return undefined;
  return dims.map((dim, index) => (dim === -1 ? (index === innermost ? left : 1) : dim));
}

function readTensor({ name, data_type, dims }: Message<'Input'>, batched: boolean, value: unknown): Read<Tensor> {
  const datatype = fromConfigName(data_type) ?? 'BYTES';
  const list = Array.isArray(value) ? value : [value];
  if (list.some(Array.isArray)) return fault(`input '${name}' must be a value or a list of values`);
  const shape = shapeFor(batched ? [-1, ...dims] : dims, list.length);
  if (!shape) return fault(`The schema can not convert input '${name}' to tensor with proper shape`);
  const bytes = bytesFromJson(name, datatype, list);
  return bytes.ok ? ok({ name, datatype, shape, bytes: bytes.value }) : bytes;
}

function parse(body: Uint8Array): Read<Record<string, unknown>> {
  let value: unknown = {};
  try {
    if (body.byteLength > 0) value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return fault('failed to parse the request JSON buffer');
  }
  return isObject(value) ? ok(value) : fault('a generate request is a JSON object');
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function readGenerate({ config }: Pick<Served, 'config'>, body: Uint8Array): Read<Generate> {
  const message = parse(body);
  if (!message.ok) return message;
  const { id = '', parameters: nested = {}, ...rest } = message.value;
  if (typeof id !== 'string') return fault("Unable to parse 'id'");
  if (!isObject(nested)) return fault("Expected JSON object for keyword: 'parameters'");
  if (config.input.some(({ name }) => name === 'parameters'))
    return fault("Keyword 'parameters' for nested schema also given as input tensor name");
  const inputs: Tensor[] = [];
  const given: [string, unknown][] = [];
  for (const [name, value] of [...Object.entries(rest), ...Object.entries(nested)]) {
    const input = config.input.find((known) => known.name === name);
    if (!input && !parameterValue.safeParse(value).success)
      return fault(`parameter '${name.slice(0, 80)}' must be a string, a number or a boolean`);
    if (!input) {
      given.push([name, value]);
      continue;
    }
    if (inputs.some((other) => other.name === name)) return fault(`input '${name}' already exists in request`);
    const tensor = readTensor(input, config.max_batch_size > 0, value);
    if (!tensor.ok) return tensor;
    inputs.push(tensor.value);
  }
  const parameters = requestParameters.safeParse(Object.fromEntries(given));
  if (!parameters.success) return fault(`parameters: ${describe(parameters.error)}`);
  return ok({ id, inputs, parameters: parameters.data });
}

/** Writes a single value as itself, several as a flat list. */
function writeGenerate({ name, version }: Served, id: string, outputs: readonly Tensor[]): Read<string> {
  const members = Object.entries({ ...(id && { id }), model_name: name, model_version: String(version) }).map(
    ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`,
  );
  for (const tensor of outputs) {
    const list = jsonFromBytes(tensor);
    if (!list.ok) return list;
    const value = elementCount(tensor.shape) === 1 ? list.value.slice(1, -1) : list.value;
    members.push(`${JSON.stringify(tensor.name)}:${value}`);
  }
  return ok(`{${members.join(',')}}`);
}

const encoder = new TextEncoder();
const event = (json: string, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  chunks: [encoder.encode(`data: ${json}\n\n`)],
});
const whole = (json: string): Answer => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  chunks: [encoder.encode(json)],
});

/**
 * Answers a generate request. An error before the network runs is an ordinary error, also of a stream; an
 * error of the network is an event.
 */
export const generate =
  (streaming: boolean) =>
  async (repository: Repository, { model, version, body, signal }: EngineRequest): Promise<Answer> => {
    const served = repository.find(model, version);
    if (!served.ok) return refused(served.refusal);
    const invalid = (text: string) => refused(refuse('INVALID_ARG', text).refusal);
    const request = readGenerate(served.value, body);
    if (!request.ok) {
      served.value.statistics.failed('OTHER', 0);
      return invalid(request.refusal.reason);
    }
    const { id, ...rest } = request.value;
    const call = toCall({ ...rest, outputs: [], binaryOutput: false }, signal);
    if (call.mark && !served.value.takesSequences)
      return refused(refuse('UNSUPPORTED', `model '${model}' does not keep sequences`).refusal);
    const answer = await served.value.infer(call);
    if (!answer.ok) {
      const plain = refused(answer.refusal);
      if (!streaming || answer.refusal.failure !== 'BACKEND') return plain;
      return event(JSON.stringify({ error: answer.refusal.text }), plain.status);
    }
    const written = writeGenerate(served.value, id, answer.value.outputs);
    if (!written.ok) return invalid(written.refusal.reason);
    return streaming ? event(written.value) : whole(written.value);
  };
