import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { controlOf } from '../../models/config/sequence-rules.ts';
import { emptyMessage } from '../../models/config/value.ts';
import type { ModelInfo, TensorInfo } from '../run/instance-messages.ts';

/**
 * Completes the configuration from the model file and checks it: missing inputs and outputs are taken over,
 * as in Triton; given ones must agree.
 */
export function matchInfo(config: ModelConfig, info: ModelInfo): Read<ModelConfig> {
  const { state = [], control_input = [] } = config.sequence_batching ?? {};
  const derived = new Set([
    ...config.batch_input.flatMap(({ target_name }) => target_name),
    ...state.map(({ input_name }) => input_name),
    ...control_input.map(({ name }) => name),
  ]);
  const kept = new Set(state.map(({ output_name }) => output_name));
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
        : info.outputs
            .filter(({ name }) => !kept.has(name))
            .map((tensor) => ({ ...emptyMessage('Output'), ...describe(tensor, batched) })),
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
    strangers(complete, info) ??
    sequenceComplaint(complete, info);
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

/** Returns the network's shape. */
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

/** Checks that states and controls are tensors of the network, of the configured type and shape. */
function sequenceComplaint(config: ModelConfig, info: ModelInfo): string | undefined {
  const { state = [], control_input = [] } = config.sequence_batching ?? {};
  const batched = config.max_batch_size > 0;
  const as = (name: string, data_type: Io['data_type'], dims: number[]) => ({
    ...emptyMessage('Output'),
    name,
    data_type,
    dims,
  });
  const shapeOf = (tensor: Io) => full(tensor, batched);
  const controls = control_input.flatMap(({ control: [control] }) => {
    const found = control && controlOf(config.sequence_batching, control.kind);
    return found ? [as(found.name, found.data_type, [1])] : [];
  });
  const read = state.map(({ input_name, data_type, dims }) => as(input_name, data_type, dims));
  const written = state.map(({ output_name, data_type, dims }) => as(output_name, data_type, dims));
  return firstComplaint([...controls, ...read], info.inputs, shapeOf) ?? firstComplaint(written, info.outputs, shapeOf);
}

/** Finds targets and sources of batch_input that do not exist. */
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
