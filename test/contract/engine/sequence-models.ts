import type { Graph } from './onnx-writer.ts';
import type { TestModel } from './test-models.ts';

/** State function of every sequence model here: order matters, and FP32 holds every value exactly. */
export const fold = (state: number, x: number): number => (state * 31 + x) % 8191;

/** STATE = fold(STATE, X), Y = STATE. */
function folding(width: number, config: string): TestModel {
  const row = (name: string) => ({ name, type: 'FLOAT' as const, dims: ['N', width] });
  const scalar = (name: string, value: number) => ({ name, type: 'FLOAT' as const, dims: [], values: [value] });
  const graph: Graph = {
    nodes: [
      { op: 'Mul', inputs: ['STATE_IN', 'factor'], outputs: ['grown'] },
      { op: 'Add', inputs: ['grown', 'X'], outputs: ['sum'] },
      { op: 'Mod', inputs: ['sum', 'modulus'], outputs: ['STATE_OUT'], attributes: { fmod: 1 } },
      { op: 'Identity', inputs: ['STATE_OUT'], outputs: ['Y'] },
    ],
    inputs: [row('X'), row('STATE_IN')],
    outputs: [row('Y'), row('STATE_OUT')],
    constants: [scalar('factor', 31), scalar('modulus', 8191)],
  };
  return { config: `${io(width)} ${config}`, graph };
}

const io = (width: number) => `backend: "onnxruntime" max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ ${width} ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ ${width} ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]`;

const state = (width: number, more = '') =>
  `state [ { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ ${width} ] ${more} } ]`;

const patient = 'max_queue_delay_microseconds: 60000000';

/** Returns the control tensors of each request as numbers: START, END, READY, and the id. */
const controls: TestModel = {
  config: `backend: "onnxruntime" max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "TOLD" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
sequence_batching {
  oldest { }
  max_sequence_idle_microseconds: 60000000
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 5, 7 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}`,
  graph: {
    nodes: [
      { op: 'Cast', inputs: ['END'], outputs: ['end'], attributes: { to: 1 } },
      { op: 'Cast', inputs: ['READY'], outputs: ['ready'], attributes: { to: 1 } },
      { op: 'Cast', inputs: ['CORRID'], outputs: ['corrid'], attributes: { to: 1 } },
      { op: 'Concat', inputs: ['START', 'end', 'ready', 'corrid'], outputs: ['flags'], attributes: { axis: 1 } },
      { op: 'Mul', inputs: ['X', 'zero'], outputs: ['nothing'] },
      { op: 'Add', inputs: ['flags', 'nothing'], outputs: ['TOLD'] },
    ],
    inputs: [
      { name: 'X', type: 'FLOAT', dims: ['N', 1] },
      { name: 'START', type: 'FLOAT', dims: ['N', 1] },
      { name: 'END', type: 'INT32', dims: ['N', 1] },
      { name: 'READY', type: 'BOOL', dims: ['N', 1] },
      { name: 'CORRID', type: 'UINT64', dims: ['N', 1] },
    ],
    outputs: [{ name: 'TOLD', type: 'FLOAT', dims: ['N', 4] }],
    constants: [{ name: 'zero', type: 'FLOAT', dims: [], values: [0] }],
  },
};

/** X + X, folded by another model. */
const doubled = (step: string): TestModel => ({
  config: `platform: "ensemble" max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "add" model_version: -1
    input_map { key: "A" value: "X" } input_map { key: "B" value: "X" }
    output_map { key: "SUM" value: "twice" } },
  { model_name: "${step}" model_version: -1
    input_map { key: "X" value: "twice" } output_map { key: "Y" value: "Y" } }
] }`,
});

export const sequenceModels: Readonly<Record<string, TestModel>> = {
  /** Requirement A5: implicit state FP32[512], idle timeout of one second. */
  A5: folding(
    512,
    `sequence_batching { oldest { max_candidate_sequences: 64 } max_sequence_idle_microseconds: 1000000 ${state(512)} }`,
  ),
  /** The same with a long idle timeout. */
  sequence_wide: folding(
    512,
    `sequence_batching { oldest { max_candidate_sequences: 64 } max_sequence_idle_microseconds: 60000000 ${state(512)} }`,
  ),
  /** Batches wait until four sequences have a request. */
  sequence_batches: folding(
    1,
    `sequence_batching { oldest { max_candidate_sequences: 8 preferred_batch_size: [ 4 ] ${patient} }
  max_sequence_idle_microseconds: 60000000 ${state(1)} }`,
  ),
  /** A row of the batch for each sequence, sent when every row is taken. */
  sequence_direct: folding(
    1,
    `sequence_batching { direct { minimum_slot_utilization: 1.0 ${patient} }
  max_sequence_idle_microseconds: 60000000 ${state(1)} }`,
  ),
  /** The same, sent at once: rows of sequences without a request stay empty. */
  sequence_rows: folding(1, `sequence_batching { direct { } max_sequence_idle_microseconds: 60000000 ${state(1)} }`),
  /** One sequence at a time, idle timeout of one second. */
  sequence_single: folding(
    1,
    `sequence_batching { oldest { max_candidate_sequences: 1 } max_sequence_idle_microseconds: 1000000 ${state(1)} }`,
  ),
  /** One sequence at a time, long idle timeout. */
  sequence_alone: folding(
    1,
    `sequence_batching { oldest { max_candidate_sequences: 1 } max_sequence_idle_microseconds: 60000000 ${state(1)} }`,
  ),
  /** Many sequences at a time, with an explicit initial state. */
  sequence_many: folding(
    1,
    `sequence_batching { oldest { max_candidate_sequences: 64 } max_sequence_idle_microseconds: 60000000
  ${state(1, 'initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true }')} }`,
  ),
  /** Fewer slots than there are clients. */
  sequence_few: folding(
    1,
    `sequence_batching { oldest { max_candidate_sequences: 4 } max_sequence_idle_microseconds: 1000000 ${state(1)} }`,
  ),
  sequence_controls: controls,
  sequence_ensemble: doubled('sequence_many'),
  sequence_few_ensemble: doubled('sequence_few'),
};
