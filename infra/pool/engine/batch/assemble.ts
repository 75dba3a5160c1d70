import { datatypes } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { elementCount, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { modelShape } from './reshape.ts';

/**
 * Concatenates the inputs of requests into those of one execution. Every tensor gets memory of its own,
 * because it moves to the instance's thread while the requests' bodies stay here for a second attempt.
 */
export function assemble(config: ModelConfig, requests: readonly (readonly Tensor[])[]): Read<Tensor[]> {
  const pick = (name: string) => requests.map((inputs) => inputs.find((tensor) => tensor.name === name)!);
  const joined = config.input.map((input) => joinInput(input, pick(input.name), config.max_batch_size > 0));
  const tensors = [...joined];
  for (const batchInput of config.batch_input) {
    const derived = deriveInput(batchInput, pick(batchInput.source_input[0]!));
    if (!derived.ok) return derived;
    tensors.push(derived.value);
  }
  return ok(tensors);
}

function joinBytes(parts: readonly Tensor[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { bytes }) => sum + bytes.byteLength, 0));
  let at = 0;
  for (const { bytes } of parts) {
    out.set(bytes, at);
    at += bytes.byteLength;
  }
  return out;
}

function joinInput(input: Message<'Input'>, parts: readonly Tensor[], batched: boolean): Tensor {
  const { name, datatype, shape } = parts[0]!;
  const bytes = joinBytes(parts);
  if (!batched) return { name, datatype, bytes, shape: modelShape(input, shape) };
  if (input.allow_ragged_batch) {
    return { name, datatype, bytes, shape: [parts.reduce((sum, part) => sum + count(part), 0)] };
  }
  const items = parts.reduce((sum, part) => sum + part.shape[0]!, 0);
  return { name, datatype, bytes, shape: [items, ...modelShape(input, shape.slice(1))] };
}

/** Elements of a checked tensor. */
const count = ({ shape }: Tensor): number => elementCount(shape) ?? 0;

function runningSum(counts: readonly number[]): number[] {
  let sum = 0;
  return counts.map((value) => {
    sum += value;
    return sum;
  });
}

const itemShapes = (sources: readonly Tensor[]): number[] =>
  sources.flatMap(({ shape: [items = 0, ...rest] }) => Array.from({ length: items }, () => rest).flat());

type Derivation = (sources: readonly Tensor[]) => { values: number[]; shape: number[] };
const flat = (values: number[]) => ({ values, shape: [values.length] });

/**
 * Derived batch inputs by kind, one entry per request, as in Triton's collector (backend_input_collector.cc).
 */
const derivations: Record<Message<'BatchInput'>['kind'], Derivation> = {
  BATCH_ELEMENT_COUNT: (sources) => flat(sources.map(count)),
  BATCH_ACCUMULATED_ELEMENT_COUNT: (sources) => flat(runningSum(sources.map(count))),
  BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: (sources) => flat([0, ...runningSum(sources.map(count))]),
  // Only the shape carries information.
  BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: (sources) => flat(new Array(Math.max(...sources.map(count))).fill(0)),
  BATCH_ITEM_SHAPE: (sources) => {
    const rank = sources[0]!.shape.length - 1;
    const values = itemShapes(sources);
    return { values, shape: [values.length / Math.max(1, rank), rank] };
  },
  BATCH_ITEM_SHAPE_FLATTEN: (sources) => flat(itemShapes(sources)),
};

/** The largest count each type holds exactly. */
const exactUpTo = { FP32: 2 ** 24, INT32: 2 ** 31 - 1 } as const;

function deriveInput(
  { kind, target_name, data_type }: Message<'BatchInput'>,
  sources: readonly Tensor[],
): Read<Tensor> {
  const { values, shape } = derivations[kind](sources);
  const datatype = data_type === 'TYPE_FP32' ? 'FP32' : 'INT32';
  // A rounded offset would cut into the neighbour's data. The batch fails, and its requests go one by one.
  if (values.some((value) => value > exactUpTo[datatype])) return fault(`${target_name[0]} does not fit ${datatype}`);
  const out = new Uint8Array(values.length * datatypes[datatype].bytes);
  const view = new DataView(out.buffer);
  for (const [index, value] of values.entries()) {
    if (datatype === 'FP32') view.setFloat32(index * 4, value, true);
    else view.setInt32(index * 4, value, true);
  }
  return ok({ name: target_name[0]!, datatype, shape, bytes: out });
}
