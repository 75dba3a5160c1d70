import { fromConfigName } from '../../../../shared/kserve/datatype.ts';
import type { Message, ModelConfig } from './schema.ts';
import { checkSequences } from './sequence-rules.ts';

/** Threads of one model: each holds the whole network in memory. */
export const ENGINE_INSTANCES_MAX = 16;
/** Steps of one ensemble. */
export const ENSEMBLE_STEPS_MAX = 64;
/** Executions of one warm-up sample. */
const WARMUP_COUNT_MAX = 100;

type Rule = (config: ModelConfig) => string | undefined;

/** Returns the first broken rule. Most rules are Triton's; ours refuse what this engine would do wrongly. */
export const checkRules: Rule = (config) => {
  for (const rule of rules) {
    const complaint = rule(config);
    if (complaint !== undefined) return complaint;
  }
  return undefined;
};

/** Refused rather than reported: without these settings a model would give other answers, or less safety. */
const unsupported: Rule = (config) => {
  if (config.model_transaction_policy?.decoupled) return 'decoupled models are not supported by this engine';
  if (config.model_repository_agents) return 'model_repository_agents cannot run in this engine';
  const { dynamic_batching: dynamic, sequence_batching: sequences, model_warmup: warmups } = config;
  if (dynamic?.preserve_ordering || sequences?.oldest?.preserve_ordering)
    return 'preserve_ordering is not supported by this engine';
  const inputs = warmups.flatMap(({ inputs }) => Object.values(inputs));
  if (inputs.some(({ random_data, input_data_file }) => random_data || input_data_file !== undefined))
    return 'this engine warms up with zeroes only (zero_data)';
  if (sequences?.state.some(({ initial_state }) => initial_state.some(({ data_file }) => data_file !== undefined)))
    return 'this engine begins states with zeroes only (zero_data)';
  for (const tensor of [...config.input, ...config.output]) {
    if (tensor.is_shape_tensor) return `'${tensor.name}': is_shape_tensor needs TensorRT`;
    if (tensor.is_non_linear_format_io) return `'${tensor.name}': is_non_linear_format_io needs TensorRT`;
  }
  return undefined;
};

const sizes: Rule = (config) => (config.max_batch_size < 0 ? "'max_batch_size' must be non-negative" : undefined);

type Io = { name: string; data_type: string; dims: number[]; reshape: Message<'Reshape'> | undefined };

function checkIo(kind: string, list: readonly Io[]): string | undefined {
  const seen = new Set<string>();
  for (const { name, data_type, dims, reshape } of list) {
    if (name === '') return `an ${kind} has no name`;
    if (seen.has(name)) return `${kind} '${name}' is given twice`;
    seen.add(name);
    if (fromConfigName(data_type) === undefined) return `${kind} '${name}' must specify 'data_type'`;
    if (dims.length === 0 && !reshape) return `${kind} '${name}' must specify 'dims'`;
    if (dims.some((dim) => dim < 1 && dim !== -1)) return `${kind} '${name}': a dimension must be positive or -1`;
    if (reshape && !sameVolume(dims, reshape.shape)) return `${kind} '${name}' has different size for dims and reshape`;
  }
  return undefined;
}

/** Free dimensions match in order, so their number must agree, and the product of the others. */
function sameVolume(dims: readonly number[], shape: readonly number[]): boolean {
  const volume = (list: readonly number[]) => list.reduce((product, dim) => (dim === -1 ? product : product * dim), 1);
  const free = (list: readonly number[]) => list.filter((dim) => dim === -1).length;
  return shape.every((dim) => dim >= 1 || dim === -1) && volume(dims) === volume(shape) && free(dims) === free(shape);
}

const tensors: Rule = (config) => checkIo('input', config.input) ?? checkIo('output', config.output);

const batching: Rule = ({ dynamic_batching: batcher, max_batch_size: largest }) => {
  if (!batcher) return undefined;
  for (const size of batcher.preferred_batch_size) {
    if (size <= 0) return 'dynamic batching preferred size must be positive';
    if (size > largest) return 'dynamic batching preferred size must be <= max batch size';
  }
  const levels = batcher.priority_levels;
  const wrong = (level: number) => level < 1 || level > levels;
  if (levels > 0) {
    if (wrong(batcher.default_priority_level)) return `default priority level must be in range [1, ${levels}]`;
    if (Object.keys(batcher.priority_queue_policy).some((key) => wrong(Number(key)))) {
      return `priority queue policy must have priority level in range [1, ${levels}]`;
    }
  }
  return undefined;
};

const batchTensors: Rule = ({ batch_input, batch_output, input, output }) => {
  const inputs = new Set(input.map(({ name }) => name));
  for (const { target_name, source_input, data_type, kind } of batch_input) {
    const called = `batch input ${kind}`;
    if (target_name.length !== 1) return `${called} expects 1 target name`;
    if (source_input.length !== 1) return `${called} expects 1 source input`;
    if (data_type !== 'TYPE_INT32' && data_type !== 'TYPE_FP32') return `${called} must be TYPE_INT32 or TYPE_FP32`;
    // The model file may define the inputs; the source is then checked against it.
    if (inputs.size > 0 && !inputs.has(source_input[0]!)) return `${called}: unknown source input '${source_input[0]}'`;
  }
  for (const { target_name, source_input, kind } of batch_output) {
    if (source_input.length !== 1) return `batch output ${kind} expects 1 source input`;
    const unknown = target_name.find((name) => !output.some((known) => known.name === name));
    if (unknown !== undefined) return `batch output ${kind}: unknown target '${unknown}'`;
    if (!inputs.has(source_input[0]!)) return `batch output ${kind}: unknown source input '${source_input[0]}'`;
  }
  return undefined;
};

const instances: Rule = (config) => {
  if (config.ensemble_scheduling) {
    if (config.instance_group.length > 0) return 'instance group should not be specified for ensembles';
    return config.model_warmup.length > 0 ? 'model_warmup should not be specified for ensembles' : undefined;
  }
  if (config.instance_group.some(({ count }) => count < 0)) return 'instance count must not be negative';
  const total = config.instance_group.reduce((sum, { count }) => sum + count, 0);
  if (total > ENGINE_INSTANCES_MAX) return `${total} instances are over this engine's ${ENGINE_INSTANCES_MAX}`;
  return config.instance_group.every(({ passive }) => passive) ? 'every instance group is passive' : undefined;
};

const ensemble: Rule = ({ ensemble_scheduling: scheduling, input, output }) => {
  if (!scheduling) return undefined;
  if (scheduling.step.length === 0) return 'an ensemble needs at least one step';
  if (scheduling.step.length > ENSEMBLE_STEPS_MAX) return `more than ${ENSEMBLE_STEPS_MAX} ensemble steps`;
  if (input.length === 0 || output.length === 0) return 'an ensemble must specify its inputs and outputs';
  for (const [index, step] of scheduling.step.entries()) {
    if (step.model_name === '') return `ensemble step ${index} has no model_name`;
    if (step.model_namespace !== '') return `ensemble step ${index}: model namespaces are not supported`;
    if (Object.keys(step.input_map).length === 0) return `ensemble step ${index} must have at least one input_map`;
    if (Object.keys(step.output_map).length === 0) return `ensemble step ${index} must have at least one output_map`;
  }
  return undefined;
};

const warmups: Rule = ({ model_warmup, max_batch_size }) => {
  for (const { name, batch_size, inputs, count } of model_warmup) {
    if (batch_size > max_batch_size) return `warm-up '${name}': batch_size is over max_batch_size`;
    if (count > WARMUP_COUNT_MAX) return `warm-up '${name}': count is over ${WARMUP_COUNT_MAX}`;
    for (const [input, { data_type, dims }] of Object.entries(inputs)) {
      if (fromConfigName(data_type) === undefined) return `warm-up '${name}': input '${input}' has no data_type`;
      if (dims.some((dim) => dim < 1)) return `warm-up '${name}': input '${input}' needs positive dims`;
    }
  }
  return undefined;
};

const rules: readonly Rule[] = [
  unsupported,
  sizes,
  tensors,
  batching,
  batchTensors,
  instances,
  checkSequences,
  ensemble,
  warmups,
];
