import { MiB } from '../../../../shared/bytes.ts';
import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { elementCount } from '../../../../shared/kserve/tensor.ts';
import type { Message, ModelConfig } from './schema.ts';

/** Sequences of one model version over all its instances; further ones wait, as in Triton's backlog. */
const ENGINE_SEQUENCES_MAX = 4096;
/**
 * Implicit state of one model version with all its sequences: a larger model does not load, so that no
 * sentence fails halfway.
 */
const ENGINE_STATE_BYTES = 2048 * MiB;

type Batching = Message<'SequenceBatching'>;
export type ControlKind = Message<'Control'>['kind'];

/**
 * Returns the number of sequences an instance may hold: its batch rows, or the configured number of
 * candidates.
 */
export function slotsPerInstance({ sequence_batching: batching, max_batch_size }: ModelConfig): number {
  const candidates = batching?.oldest?.max_candidate_sequences ?? 0;
  return candidates > 0 ? candidates : Math.max(1, max_batch_size);
}

export interface Control {
  readonly name: string;
  readonly data_type: Message<'Control'>['data_type'];
  /** Values of the tensor for a false and a true flag; absent for the correlation id. */
  readonly values: readonly [number, number] | undefined;
}

/** Returns the control tensor of this kind, if the network has one. */
export function controlOf(batching: Batching | undefined, kind: ControlKind): Control | undefined {
  for (const { name, control } of batching?.control_input ?? []) {
    const found = control.find((one) => one.kind === kind);
    if (found) return { name, ...read(found) };
  }
  return undefined;
}

function read(control: Message<'Control'>): Omit<Control, 'name'> {
  const pair = ([off = 0, on = 0]: readonly (number | boolean)[]): [number, number] => [Number(off), Number(on)];
  if (control.int32_false_true.length > 0) return { data_type: 'TYPE_INT32', values: pair(control.int32_false_true) };
  if (control.fp32_false_true.length > 0) return { data_type: 'TYPE_FP32', values: pair(control.fp32_false_true) };
  if (control.bool_false_true.length > 0) return { data_type: 'TYPE_BOOL', values: pair(control.bool_false_true) };
  return { data_type: control.data_type, values: undefined };
}

/** Returns the first broken rule of a model with sequences. The texts are Triton's where it has one. */
export function checkSequences(config: ModelConfig): string | undefined {
  const { sequence_batching: batching, max_batch_size: largest } = config;
  if (!batching) return undefined;
  if (batching.iterative_sequence) return 'iterative_sequence needs a backend that asks for its requests again';
  if (config.response_cache?.enable) return 'response_cache cannot be used together with sequence_batching';
  for (const size of batching.oldest?.preferred_batch_size ?? []) {
    if (size <= 0) return 'sequence batching preferred batch size must be positive';
    if (size > largest) return 'sequence batching preferred batch size must be <= max batch size';
  }
  const { minimum_slot_utilization: share = 0 } = batching.direct ?? {};
  if (!(share >= 0 && share <= 1)) return 'sequence batching minimum slot utilization must be in range (0.0, 1.0]';
  return checkControls(batching) ?? checkStates(config, batching) ?? checkMemory(config, batching);
}

const corridTypes = ['TYPE_UINT64', 'TYPE_INT64', 'TYPE_UINT32', 'TYPE_INT32', 'TYPE_STRING'];

function checkControls({ control_input }: Batching): string | undefined {
  const seen = new Set<string>();
  for (const { name, control } of control_input) {
    if (control.length > 1) return `sequence batching control tensor '${name}' is specified for multiple control kinds`;
    const [only] = control;
    if (!only) return `sequence batching control tensor '${name}' controls nothing`;
    if (name === '') return `sequence batching control tensor must have a name for ${only.kind}`;
    if (seen.has(only.kind)) return `sequence batching specifies multiple ${only.kind} tensors`;
    seen.add(only.kind);
    const complaint = checkControl(only);
    if (complaint) return complaint;
  }
  return undefined;
}

function checkControl(control: Message<'Control'>): string | undefined {
  const { kind, data_type } = control;
  const fields = ['int32_false_true', 'fp32_false_true', 'bool_false_true'] as const;
  const given = fields.filter((field) => control[field].length > 0);
  const names = "'int32_false_true', 'fp32_false_true'";
  if (kind === 'CONTROL_SEQUENCE_CORRID') {
    if (given.length > 0) return `sequence batching must not specify either ${names} or 'bool_false_true' for ${kind}`;
    return corridTypes.includes(data_type)
      ? undefined
      : `unexpected data type for control ${kind}. Allowed data types are ${corridTypes.join(', ')}`;
  }
  if (given.length === 0) return `sequence batching must specify either ${names} or 'bool_false_true' for ${kind}`;
  if (given.length > 1)
    return `sequence batching specifies more than one from ${names} and 'bool_false_true' for ${kind}`;
  const [field] = given;
  return field && control[field].length !== 2
    ? `sequence batching control '${field}' must have exactly 2 entries for ${kind}`
    : undefined;
}

function checkStates({ input }: ModelConfig, { state, control_input }: Batching): string | undefined {
  const taken = new Set([...input, ...control_input].map(({ name }) => name));
  const written = new Set<string>();
  for (const one of state) {
    const { input_name, output_name, data_type, dims } = one;
    if (input_name === '' || output_name === '') return "a state must specify 'input_name' and 'output_name'";
    const called = `state '${input_name}'`;
    if (taken.has(input_name)) return `${called}: the model has another input of that name`;
    if (written.has(output_name)) return `${called}: '${output_name}' is the output of another state`;
    taken.add(input_name);
    written.add(output_name);
    if (fromConfigName(data_type) === undefined) return `${called} must specify 'data_type'`;
    if (data_type === 'TYPE_STRING') return `${called}: this engine keeps no texts between requests`;
    if (dims.some((dim) => dim < 1 && dim !== -1)) return `${called}: a dimension must be positive or -1`;
    const complaint = checkInitial(one);
    if (complaint) return `${called}: ${complaint}`;
  }
  return undefined;
}

function checkInitial({ initial_state, data_type, dims }: Message<'State'>): string | undefined {
  if (initial_state.length > 1) return "'initial_state' must contain exactly one or zero element";
  const [initial] = initial_state;
  if (!initial) return undefined;
  if (initial.data_type !== data_type) return "the data type of 'initial_state' does not match the state's";
  if (initial.name === '') return "field 'name' must be set when using 'initial_state'";
  if (initial.zero_data === undefined && initial.data_file === undefined) return "'initial_state' gives no data";
  const fits =
    initial.dims.length === dims.length &&
    initial.dims.every((dim, index) => dim >= 1 && (dims[index] === -1 || dims[index] === dim));
  return fits ? undefined : "'initial_state' dims do not match the state's";
}

/** Returns the initial bytes of a sequence; free dimensions count as 1, as in Triton. */
function stateBytes(state: readonly Message<'State'>[]): number {
  return state.reduce((sum, { data_type, dims, initial_state: [initial] }) => {
    const type = fromConfigName(data_type);
    const shape = initial?.dims ?? dims.map((dim) => (dim === -1 ? 1 : dim));
    return sum + (elementCount(shape) ?? Number.POSITIVE_INFINITY) * (type ? datatypes[type].bytes : 0);
  }, 0);
}

function checkMemory(config: ModelConfig, { state }: Batching): string | undefined {
  const instances = config.instance_group.reduce((sum, group) => sum + (group.passive ? 0 : group.count), 0);
  const slots = slotsPerInstance(config) * Math.max(1, instances);
  if (slots > ENGINE_SEQUENCES_MAX)
    return `${slots} sequences at a time are over this engine's ${ENGINE_SEQUENCES_MAX}`;
  const bytes = slots * stateBytes(state);
  return bytes > ENGINE_STATE_BYTES
    ? `the states of ${slots} sequences take ${bytes} bytes, over ${ENGINE_STATE_BYTES}`
    : undefined;
}
