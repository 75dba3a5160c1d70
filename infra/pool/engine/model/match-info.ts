import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { emptyMessage } from '../../models/config/value.ts';
import type { ModelInfo, TensorInfo } from '../run/instance-messages.ts';

/**
 * The configuration completed from the model file, and checked against it: inputs and outputs that were left out are
 * taken over, as Triton does; those that are given must agree.
 */
export function matchInfo(config: ModelConfig, info: ModelInfo): Read<ModelConfig> {
  const derived = new Set(config.batch_input.flatMap(({ target_name }) => target_name));
  const batched = config.max_batch_size > 0;
  const own = info.inputs.filter(({ name }) => !derived.has(name));
  const complete: ModelConfig = {
    ...config,
    input:
      config.input.length > 0
        ? config.input
        : own.map((tensor) => ({ ...emptyMessage('Input'), ...describe(tensor, batched) })),
    output:
      config.output.length > 0
        ? config.output
        : info.outputs.map((tensor) => ({ ...emptyMessage('Output'), ...describe(tensor, batched) })),
  };
  const forgotten = own.find(({ name }) => !complete.input.some((input) => input.name === name));
  if (forgotten) return fault(`the model needs an input '${forgotten.name}' that its configuration does not give`);
  const scattered = new Set(config.batch_output.flatMap(({ target_name }) => target_name));
  const complaint =
    firstComplaint(complete.input, info.inputs, (input) =>
      input.allow_ragged_batch && batched ? [-1] : full(input, batched),
    ) ??
    firstComplaint(complete.output, info.outputs, (output) =>
      scattered.has(output.name) ? [-1] : full(output, batched),
    ) ??
    strangers(complete, info);
  return complaint === undefined ? ok(complete) : fault(complaint);
}

function describe({ name, datatype, dims }: TensorInfo, batched: boolean) {
  return {
    name,
    data_type: datatypes[datatype].config as Message<'Input'>['data_type'],
    dims: batched ? dims.slice(1) : [...dims],
  };
}

type Io = Message<'Input'> | Message<'Output'>;

/** The shape the network sees. */
function full({ dims, reshape }: Io, batched: boolean): number[] {
  const own = reshape ? reshape.shape : dims;
  return batched ? [-1, ...own] : own;
}

function firstComplaint<T extends Io>(
  list: readonly T[],
  infos: readonly TensorInfo[],
  shapeOf: (tensor: T) => number[],
) {
  for (const tensor of list) {
    const info = infos.find(({ name }) => name === tensor.name);
    if (!info)
      return `the model has no tensor '${tensor.name}', it has ${infos.map(({ name }) => `'${name}'`).join(', ')}`;
    if (fromConfigName(tensor.data_type) !== info.datatype) {
      return `'${tensor.name}' is ${datatypes[info.datatype].config} in the model, ${tensor.data_type} in its configuration`;
    }
    const shape = shapeOf(tensor);
    const agrees =
      shape.length === info.dims.length &&
      shape.every((dim, i) => dim === -1 || info.dims[i] === -1 || dim === info.dims[i]);
    if (!agrees) return `'${tensor.name}' has the shape [${info.dims}] in the model, [${shape}] in its configuration`;
  }
  return undefined;
}

/** Targets of batch_input must exist too, and their sources. */
function strangers(config: ModelConfig, info: ModelInfo): string | undefined {
  for (const {
    target_name: [target],
    source_input: [source],
    data_type,
  } of config.batch_input) {
    const found = info.inputs.find(({ name }) => name === target);
    if (!found) return `the model has no input '${target}' for the batch input`;
    if (datatypes[found.datatype].config !== data_type)
      return `batch input '${target}' is ${found.datatype} in the model`;
    if (!config.input.some(({ name }) => name === source))
      return `batch input '${target}': unknown source input '${source}'`;
  }
  return undefined;
}
