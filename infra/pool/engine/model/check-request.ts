import { fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import type { InferRequest } from '../../../../shared/kserve/infer-request.ts';
import { readBytes, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { fits } from '../batch/reshape.ts';
import { type Mark, readMark } from '../batch/sequence-mark.ts';

/** A call to a model, over HTTP or as a step of an ensemble. */
export interface Call {
  readonly inputs: readonly Tensor[];
  /** Names of the requested outputs; empty: all. */
  readonly outputs: readonly string[];
  readonly priority: number;
  readonly timeoutUs: number;
  readonly signal: AbortSignal | undefined;
  /** Sequence of the request, if it belongs to one. */
  readonly mark: Mark | undefined;
}

export const toCall = ({ inputs, outputs, parameters }: InferRequest, signal: AbortSignal): Call => ({
  inputs,
  outputs: outputs.map(({ name }) => name),
  priority: parameters.priority ?? 0,
  timeoutUs: parameters.timeout ?? 0,
  mark: readMark(parameters),
  signal,
});

export interface Checked {
  readonly size: number;
  readonly outputs: readonly string[];
  /** Requests with equal shapes may share a batch. */
  readonly shape: string;
}

/**
 * Reports whether a tensor holds valid text: ONNX Runtime's Node binding has strings only as text and would
 * change other bytes.
 */
function isText(tensor: Tensor): boolean {
  const elements = readBytes(tensor);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    if (elements.ok) for (const element of elements.value) decoder.decode(element);
    return elements.ok;
  } catch {
    return false;
  }
}

/**
 * Checks a request against the model. The texts are Triton's where it has one, since clients may match on
 * them.
 */
export function checkRequest(
  config: ModelConfig,
  { inputs, outputs }: Pick<Call, 'inputs' | 'outputs'>,
): Read<Checked> {
  const { name: model, max_batch_size: largest } = config;
  const stranger = inputs.find(({ name }) => !config.input.some((known) => known.name === name));
  if (stranger) return fault(`unexpected inference input '${stranger.name}' for model '${model}'`);
  const batched = largest > 0;
  const shapes: string[] = [];
  let size: number | undefined;
  for (const input of config.input) {
    const tensor = inputs.find(({ name }) => name === input.name);
    if (!tensor)
      return fault(
        `expected ${config.input.length} inputs but got ${inputs.length} inputs for model '${model}', missing required input '${input.name}'`,
      );
    const { name, datatype, shape } = tensor;
    const expected = fromConfigName(input.data_type);
    if (datatype !== expected) {
      return fault(`inference input '${name}' data-type is '${datatype}', but model '${model}' expects '${expected}'`);
    }
    if (datatype === 'BYTES' && !isText(tensor)) {
      return fault(`inference input '${name}' holds bytes that are not UTF-8 text`);
    }
    const own = batched ? shape.slice(1) : shape;
    if ((batched && shape.length === 0) || !fits(input.dims, own)) {
      const wanted = batched ? [-1, ...input.dims] : input.dims;
      return fault(`unexpected shape for input '${name}' for model '${model}'. Expected [${wanted}], got [${shape}].`);
    }
    if (batched && size !== undefined && shape[0] !== size) {
      return fault(`input '${name}' batch size does not match other inputs for '${model}'`);
    }
    size ??= batched ? shape[0] : 1;
    if (!input.allow_ragged_batch) shapes.push(own.join('x'));
  }
  if (batched && (size ?? 0) < 1) return fault(`inference request batch-size must be >= 1 for '${model}'`);
  if (batched && (size ?? 0) > largest)
    return fault(`inference request batch-size must be <= ${largest} for '${model}'`);
  const known = config.output.map(({ name }) => name);
  const unknown = outputs.find((name) => !known.includes(name));
  if (unknown !== undefined) return fault(`unexpected inference output '${unknown}' for model '${model}'`);
  return ok({ size: size ?? 1, outputs: outputs.length > 0 ? outputs : known, shape: shapes.join(';') });
}
