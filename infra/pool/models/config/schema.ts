/**
 * model_config.proto as a table: the complete language of config.pbtxt here. A field is written as in the
 * .proto file; `?` marks a scalar inside a oneof, which is absent unless given. The TypeScript type of a
 * configuration derives from this table, so the two cannot drift apart.
 */
export const enums = {
  DataType: [
    'TYPE_INVALID',
    'TYPE_BOOL',
    'TYPE_UINT8',
    'TYPE_UINT16',
    'TYPE_UINT32',
    'TYPE_UINT64',
    'TYPE_INT8',
    'TYPE_INT16',
    'TYPE_INT32',
    'TYPE_INT64',
    'TYPE_FP16',
    'TYPE_FP32',
    'TYPE_FP64',
    'TYPE_STRING',
    'TYPE_BF16',
  ],
  InstanceKind: ['KIND_AUTO', 'KIND_GPU', 'KIND_CPU', 'KIND_MODEL'],
  SecondaryDeviceKind: ['KIND_NVDLA'],
  Format: ['FORMAT_NONE', 'FORMAT_NHWC', 'FORMAT_NCHW'],
  BatchInputKind: [
    'BATCH_ELEMENT_COUNT',
    'BATCH_ACCUMULATED_ELEMENT_COUNT',
    'BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO',
    'BATCH_MAX_ELEMENT_COUNT_AS_SHAPE',
    'BATCH_ITEM_SHAPE',
    'BATCH_ITEM_SHAPE_FLATTEN',
  ],
  BatchOutputKind: ['BATCH_SCATTER_WITH_INPUT_SHAPE'],
  ModelPriority: ['PRIORITY_DEFAULT', 'PRIORITY_MAX', 'PRIORITY_MIN'],
  TimeoutAction: ['REJECT', 'DELAY'],
  ControlKind: ['CONTROL_SEQUENCE_START', 'CONTROL_SEQUENCE_READY', 'CONTROL_SEQUENCE_END', 'CONTROL_SEQUENCE_CORRID'],
} as const;

export const messages = {
  ModelConfig: {
    name: 'string',
    platform: 'string',
    backend: 'string',
    runtime: 'string',
    version_policy: 'VersionPolicy',
    max_batch_size: 'int32',
    input: 'repeated Input',
    output: 'repeated Output',
    batch_input: 'repeated BatchInput',
    batch_output: 'repeated BatchOutput',
    optimization: 'Optimization',
    dynamic_batching: 'DynamicBatching',
    sequence_batching: 'SequenceBatching',
    ensemble_scheduling: 'Ensembling',
    instance_group: 'repeated InstanceGroup',
    default_model_filename: 'string',
    cc_model_filenames: 'map<string, string>',
    metric_tags: 'map<string, string>',
    parameters: 'map<string, Parameter>',
    model_warmup: 'repeated Warmup',
    model_operations: 'Operations',
    model_transaction_policy: 'TransactionPolicy',
    model_repository_agents: 'RepositoryAgents',
    response_cache: 'ResponseCache',
    model_metrics: 'ModelMetrics',
  },
  Input: {
    name: 'string',
    data_type: 'DataType',
    format: 'Format',
    dims: 'repeated int64',
    reshape: 'Reshape',
    is_shape_tensor: 'bool',
    allow_ragged_batch: 'bool',
    optional: 'bool',
    is_non_linear_format_io: 'bool',
  },
  Output: {
    name: 'string',
    data_type: 'DataType',
    dims: 'repeated int64',
    reshape: 'Reshape',
    label_filename: 'string',
    is_shape_tensor: 'bool',
    is_non_linear_format_io: 'bool',
  },
  Reshape: { shape: 'repeated int64' },
  BatchInput: {
    kind: 'BatchInputKind',
    target_name: 'repeated string',
    data_type: 'DataType',
    source_input: 'repeated string',
  },
  BatchOutput: { target_name: 'repeated string', kind: 'BatchOutputKind', source_input: 'repeated string' },
  VersionPolicy: { latest: 'VersionLatest', all: 'VersionAll', specific: 'VersionSpecific' },
  VersionLatest: { num_versions: 'uint32' },
  VersionAll: {},
  VersionSpecific: { versions: 'repeated int64' },
  InstanceGroup: {
    name: 'string',
    kind: 'InstanceKind',
    count: 'int32',
    rate_limiter: 'RateLimiter',
    gpus: 'repeated int32',
    secondary_devices: 'repeated SecondaryDevice',
    profile: 'repeated string',
    passive: 'bool',
    host_policy: 'string',
  },
  RateLimiter: { resources: 'repeated RateLimiterResource', priority: 'uint32' },
  RateLimiterResource: { name: 'string', global: 'bool', count: 'uint32' },
  SecondaryDevice: { kind: 'SecondaryDeviceKind', device_id: 'int64' },
  Optimization: {
    graph: 'Graph',
    priority: 'ModelPriority',
    cuda: 'Cuda',
    execution_accelerators: 'Accelerators',
    input_pinned_memory: 'PinnedMemory',
    output_pinned_memory: 'PinnedMemory',
    gather_kernel_buffer_threshold: 'uint32',
    eager_batching: 'bool',
  },
  Graph: { level: 'int32' },
  Cuda: {
    graphs: 'bool',
    busy_wait_events: 'bool',
    graph_spec: 'repeated GraphSpec',
    output_copy_stream: 'bool',
  },
  GraphSpec: { batch_size: 'int32', input: 'map<string, GraphShape>', graph_lower_bound: 'GraphLowerBound' },
  GraphLowerBound: { batch_size: 'int32', input: 'map<string, GraphShape>' },
  GraphShape: { dim: 'repeated int64' },
  Accelerators: {
    gpu_execution_accelerator: 'repeated Accelerator',
    cpu_execution_accelerator: 'repeated Accelerator',
  },
  Accelerator: { name: 'string', parameters: 'map<string, string>' },
  PinnedMemory: { enable: 'bool' },
  QueuePolicy: {
    timeout_action: 'TimeoutAction',
    default_timeout_microseconds: 'uint64',
    allow_timeout_override: 'bool',
    max_queue_size: 'uint32',
  },
  DynamicBatching: {
    preferred_batch_size: 'repeated int32',
    max_queue_delay_microseconds: 'uint64',
    preserve_ordering: 'bool',
    priority_levels: 'uint64',
    default_priority_level: 'uint64',
    default_queue_policy: 'QueuePolicy',
    priority_queue_policy: 'map<uint64, QueuePolicy>',
  },
  SequenceBatching: {
    direct: 'StrategyDirect',
    oldest: 'StrategyOldest',
    max_sequence_idle_microseconds: 'uint64',
    control_input: 'repeated ControlInput',
    state: 'repeated State',
    iterative_sequence: 'bool',
  },
  StrategyDirect: { max_queue_delay_microseconds: 'uint64', minimum_slot_utilization: 'float' },
  StrategyOldest: {
    max_candidate_sequences: 'int32',
    preferred_batch_size: 'repeated int32',
    max_queue_delay_microseconds: 'uint64',
    preserve_ordering: 'bool',
  },
  ControlInput: { name: 'string', control: 'repeated Control' },
  Control: {
    kind: 'ControlKind',
    int32_false_true: 'repeated int32',
    fp32_false_true: 'repeated float',
    bool_false_true: 'repeated bool',
    data_type: 'DataType',
  },
  State: {
    input_name: 'string',
    output_name: 'string',
    data_type: 'DataType',
    dims: 'repeated int64',
    initial_state: 'repeated InitialState',
    use_same_buffer_for_input_output: 'bool',
    use_growable_memory: 'bool',
  },
  InitialState: {
    data_type: 'DataType',
    dims: 'repeated int64',
    zero_data: 'bool?',
    data_file: 'string?',
    name: 'string',
  },
  Ensembling: { step: 'repeated Step', max_inflight_requests: 'uint32' },
  Step: {
    model_name: 'string',
    model_version: 'int64',
    input_map: 'map<string, string>',
    output_map: 'map<string, string>',
    model_namespace: 'string',
  },
  Parameter: { string_value: 'string' },
  Warmup: { name: 'string', batch_size: 'uint32', inputs: 'map<string, WarmupInput>', count: 'uint32' },
  WarmupInput: {
    data_type: 'DataType',
    dims: 'repeated int64',
    zero_data: 'bool?',
    random_data: 'bool?',
    input_data_file: 'string?',
  },
  Operations: { op_library_filename: 'repeated string' },
  TransactionPolicy: { decoupled: 'bool' },
  RepositoryAgents: { agents: 'repeated Agent' },
  Agent: { name: 'string', parameters: 'map<string, string>' },
  ResponseCache: { enable: 'bool' },
  ModelMetrics: { metric_control: 'repeated MetricControl' },
  MetricControl: { metric_identifier: 'MetricIdentifier', histogram_options: 'HistogramOptions' },
  MetricIdentifier: { family: 'string' },
  HistogramOptions: { buckets: 'repeated double' },
} as const;

/** Groups of fields of which at most one may be set. */
export const oneofs: Partial<Record<MessageName, readonly string[]>> = {
  ModelConfig: ['dynamic_batching', 'sequence_batching', 'ensemble_scheduling'],
  VersionPolicy: ['latest', 'all', 'specific'],
  SequenceBatching: ['direct', 'oldest'],
  InitialState: ['zero_data', 'data_file'],
  WarmupInput: ['zero_data', 'random_data', 'input_data_file'],
};

type Messages = typeof messages;
export type MessageName = keyof Messages;
type Enums = typeof enums;
export type EnumName = keyof Enums;
type Scalars = {
  string: string;
  bool: boolean;
  int32: number;
  int64: number;
  uint32: number;
  uint64: number;
  float: number;
  double: number;
};
export type ScalarName = keyof Scalars;

type Element<T> = T extends ScalarName
  ? Scalars[T]
  : T extends EnumName
    ? Enums[T][number]
    : T extends MessageName
      ? Message<T>
      : never;
type Field<T> = T extends `repeated ${infer E}`
  ? Element<E>[]
  : T extends `map<${string}, ${infer V}>`
    ? Record<string, Element<V>>
    : T extends `${infer S}?`
      ? Element<S> | undefined
      : T extends MessageName
        ? Message<T> | undefined
        : Element<T>;

/** A message with every default filled in; absent sub-messages and oneof scalars are undefined. */
export type Message<N extends MessageName> = { -readonly [F in keyof Messages[N]]: Field<Messages[N][F]> };
export type ModelConfig = Message<'ModelConfig'>;

export interface FieldShape {
  readonly form: 'single' | 'repeated' | 'map';
  /** Type of the elements; for a map, of the values. */
  readonly type: ScalarName | EnumName | MessageName;
  readonly key?: ScalarName;
  /** An absent field stays undefined. */
  readonly optional: boolean;
}

export const isMessage = (type: string): type is MessageName => Object.hasOwn(messages, type);
export const isEnum = (type: string): type is EnumName => Object.hasOwn(enums, type);

/** Returns a field of the table; undefined when the message has no such field. */
export function fieldShape(message: MessageName, field: string): FieldShape | undefined {
  const fields: Record<string, string> = messages[message];
  if (!Object.hasOwn(fields, field)) return undefined;
  const text = fields[field] ?? '';
  const map = /^map<(\w+), (\w+)>$/.exec(text);
  if (map) {
    return { form: 'map', key: map[1] as ScalarName, type: map[2] as FieldShape['type'], optional: false };
  }
  const [, repeated, type = '', mark] = /^(repeated )?(\w+)(\?)?$/.exec(text) ?? [];
  const known = type as FieldShape['type'];
  if (repeated) return { form: 'repeated', type: known, optional: false };
  return { form: 'single', type: known, optional: mark !== undefined || isMessage(type) };
}
