import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { emptyMessage } from '../../models/config/value.ts';
import type { Flow, Graph, Head, TensorFacts } from '../archive/manifest.ts';
import { batchOn, instanceGroup, optimization, type Target, warmSizes } from './targets.ts';

/** Sequences of one instance at a time: streams of one agent. */
const CANDIDATES = 512;
/** Idle timeout: audio of a live client arrives every few hundred milliseconds. */
const IDLE_MICROSECONDS = 1_000_000;
/** Batching delay of a stream's window, shorter than that of a whole utterance. */
const STREAM_DELAY_MICROSECONDS = 2_000;
const QUEUE_TIMEOUT_MICROSECONDS = 30_000_000;
const QUEUE_SIZE = 256;
/** Sizes of free dimensions in a warm-up: a second of samples, a second of feature frames, a sentence. */
const WARM = { samples: 16_000, steps: 100, tokens: 64 };

const input = (tensor: TensorFacts): Message<'Input'> => ({
  ...emptyMessage('Input'),
  ...shapeOf(tensor),
  name: tensor.name,
  data_type: tensor.data_type,
  allow_ragged_batch: tensor.ragged === true,
});

const output = (tensor: TensorFacts): Message<'Output'> => ({
  ...emptyMessage('Output'),
  ...shapeOf(tensor),
  name: tensor.name,
  data_type: tensor.data_type,
});

/** Triton requires a dimension where a network has only the batch. */
const shapeOf = ({ dims }: TensorFacts) =>
  dims.length > 0 ? { dims: [...dims] } : { dims: [1], reshape: { shape: [] as number[] } };

export const modelName = (head: Pick<Head, 'name'>, role: string): string => `${head.name}-${role}`;
export const flowName = (head: Pick<Head, 'name'>, { suffix }: Pick<Flow, 'suffix'>): string =>
  suffix === '' ? head.name : `${head.name}-${suffix}`;

/** Returns the largest batch of a network; of an ensemble the smallest of its networks. */
export function batchOf(head: Head, graph: Graph, target: Target): number {
  if (!graph.batched) return 0;
  const [whole, networks] = [head.settings.max_batch_size, head.settings['nn.max_batch_size']];
  return batchOn(target, Math.min(Number(whole ?? 1), Number(networks ?? whole ?? 1)));
}

/**
 * Reports whether requests of different lengths could share a batch of this network ahead of one that takes
 * windows of a stream. The outputs of such a batch are padded to its longest request, and the window's next
 * network takes one window at most.
 */
export const padsWindows = (head: Head, { role, input, state }: Graph): boolean =>
  state.length === 0 &&
  input.some(({ ragged }) => ragged) &&
  head.flows.some(({ suffix, step }) => suffix === 'stream' && step.some((one) => one.role === role));

/** The configuration of one network on a target. */
export function writeGraphConfig(head: Head, graph: Graph, target: Target): ModelConfig {
  const largest = batchOf(head, graph, target);
  const inFull = head.settings['nn.use_trt_fp32'] === 'true';
  const best = optimization(target, graph, inFull);
  const base: ModelConfig = {
    ...emptyMessage('ModelConfig'),
    name: modelName(head, graph.role),
    platform: 'onnxruntime_onnx',
    max_batch_size: largest,
    input: graph.input.map(input),
    output: graph.output.map(output),
    batch_input: graph.batch_input.map((one) => ({
      ...one,
      target_name: [one.target_name],
      source_input: [one.source_input],
    })),
    instance_group: [instanceGroup(target)],
    ...(best && { optimization: best }),
  };
  if (graph.state.length > 0 || graph.control.length > 0) return { ...base, sequence_batching: sequences(graph) };
  const delay = Number(head.settings.max_queue_delay_microseconds ?? 0);
  const batching = largest > 1 && !padsWindows(head, graph) ? { dynamic_batching: queue(delay) } : {};
  return { ...base, ...batching, model_warmup: warmUps(graph, target, largest) };
}

/**
 * Priority classes as in all of Auricle; a request without one gets the third. A queue without a bound would
 * fill memory.
 */
const queue = (delay: number): Message<'DynamicBatching'> => ({
  ...emptyMessage('DynamicBatching'),
  max_queue_delay_microseconds: delay,
  priority_levels: 4,
  default_priority_level: 3,
  default_queue_policy: {
    timeout_action: 'REJECT',
    default_timeout_microseconds: QUEUE_TIMEOUT_MICROSECONDS,
    allow_timeout_override: true,
    max_queue_size: QUEUE_SIZE,
  },
});

function sequences({ state, control }: Graph): Message<'SequenceBatching'> {
  return {
    ...emptyMessage('SequenceBatching'),
    max_sequence_idle_microseconds: IDLE_MICROSECONDS,
    oldest: {
      ...emptyMessage('StrategyOldest'),
      max_candidate_sequences: CANDIDATES,
      max_queue_delay_microseconds: STREAM_DELAY_MICROSECONDS,
    },
    control_input: control.map(({ name, kind, data_type }) => {
      const one = { ...emptyMessage('Control'), kind };
      if (data_type === 'TYPE_INT32' && kind !== 'CONTROL_SEQUENCE_CORRID')
        return { name, control: [{ ...one, int32_false_true: [0, 1] }] };
      if (data_type === 'TYPE_FP32') return { name, control: [{ ...one, fp32_false_true: [0, 1] }] };
      if (data_type === 'TYPE_BOOL') return { name, control: [{ ...one, bool_false_true: [false, true] }] };
      return { name, control: [{ ...one, data_type }] };
    }),
    state: state.map((one) => ({
      ...emptyMessage('State'),
      ...one,
      dims: [...one.dims],
      initial_state: [
        {
          ...emptyMessage('InitialState'),
          name: 'nothing',
          data_type: one.data_type,
          dims: one.dims.map((dim) => (dim === -1 ? 1 : dim)),
          zero_data: true,
        },
      ],
    })),
  };
}

/**
 * Runs each size once before the model is ready. Stateful networks are left out, since a warm-up has no
 * sequence; ragged requests run one at a time, since one warm-up request cannot be several.
 */
function warmUps(graph: Graph, target: Target, largest: number): Message<'Warmup'>[] {
  const ragged = graph.input.some((one) => one.ragged);
  const sizes = largest < 1 ? [0] : ragged ? [1] : warmSizes(target, largest);
  return sizes.map((size) => ({
    ...emptyMessage('Warmup'),
    name: `batch of ${Math.max(1, size)}`,
    batch_size: size,
    count: 1,
    inputs: Object.fromEntries(graph.input.map((tensor) => [tensor.name, warmInput(tensor)])),
  }));
}

const warmInput = (tensor: TensorFacts): Message<'WarmupInput'> => ({
  ...emptyMessage('WarmupInput'),
  data_type: tensor.data_type,
  dims: (tensor.dims.length > 0 ? tensor.dims : [1]).map((dim) => (dim === -1 ? warmLength(tensor) : dim)),
  // Zeroes are valid indexes into any table.
  zero_data: true,
});

function warmLength({ data_type, dims }: TensorFacts): number {
  if (!/^TYPE_(FP|BF)/.test(data_type)) return WARM.tokens;
  return dims.length === 1 ? WARM.samples : WARM.steps;
}

/** Writes an ensemble of the networks, with the parameters that the agent reads. */
export function writeFlowConfig(
  head: Head,
  flow: Flow,
  target: Target,
  parameters: Readonly<Record<string, string>>,
): ModelConfig {
  const graphs = flow.step
    .map(({ role }) => head.graphs.find((graph) => graph.role === role))
    .filter((graph) => graph !== undefined);
  return {
    ...emptyMessage('ModelConfig'),
    name: flowName(head, flow),
    platform: 'ensemble',
    max_batch_size: Math.min(...graphs.map((graph) => batchOf(head, graph, target))),
    input: flow.input.map(input),
    output: flow.output.map(output),
    ensemble_scheduling: {
      ...emptyMessage('Ensembling'),
      step: flow.step.map(({ role, input_map, output_map }) => ({
        ...emptyMessage('Step'),
        model_name: modelName(head, role),
        model_version: -1,
        input_map: { ...input_map },
        output_map: { ...output_map },
      })),
    },
    parameters: parametersOf(parameters),
  };
}

export const parametersOf = (given: Readonly<Record<string, string>>): ModelConfig['parameters'] =>
  Object.fromEntries(Object.entries(given).map(([key, value]) => [key, { string_value: value }]));
