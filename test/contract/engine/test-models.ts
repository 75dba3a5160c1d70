import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Elem, encodeGraph, encodeModel, type Graph, type Value } from './onnx-writer.ts';
import { sequenceModels } from './sequence-models.ts';

/**
 * A small model that every engine under test serves: a graph and a config.pbtxt. An engine without ONNX
 * Runtime uses a twin in its own language, with the same name, configuration and behaviour.
 */
export interface TestModel {
  readonly config: string;
  readonly graph?: Graph;
}

const batch = (name: string, type: Elem, ...dims: (number | string)[]): Value => ({ name, type, dims: ['N', ...dims] });

/** y = x for a tensor of one type. */
function identity(type: Elem, config: string, dims: (number | string)[] = ['T']): TestModel {
  return {
    config,
    graph: {
      nodes: [{ op: 'Identity', inputs: ['X'], outputs: ['Y'] }],
      inputs: [batch('X', type, ...dims)],
      outputs: [batch('Y', type, ...dims)],
    },
  };
}

const io = (type: string, dims = '-1') => `
input [ { name: "X" data_type: ${type} dims: [ ${dims} ] } ]
output [ { name: "Y" data_type: ${type} dims: [ ${dims} ] } ]`;

/** Y = X after as many turns of a loop as X[0,0] says: the caller decides how long the instance is busy. */
function slow(config: string): TestModel {
  const body: Graph = {
    nodes: [
      { op: 'MatMul', inputs: ['m_in', 'm_in'], outputs: ['m_sq'] },
      { op: 'Clip', inputs: ['m_sq', 'low', 'high'], outputs: ['m_out'] },
      { op: 'Identity', inputs: ['cond_in'], outputs: ['cond_out'] },
    ],
    inputs: [
      { name: 'i', type: 'INT64', dims: [] },
      { name: 'cond_in', type: 'BOOL', dims: [] },
      { name: 'm_in', type: 'FLOAT', dims: [64, 64] },
    ],
    outputs: [
      { name: 'cond_out', type: 'BOOL', dims: [] },
      { name: 'm_out', type: 'FLOAT', dims: [64, 64] },
    ],
    constants: [
      { name: 'low', type: 'FLOAT', dims: [], values: [0] },
      { name: 'high', type: 'FLOAT', dims: [], values: [1] },
    ],
  };
  return {
    config,
    graph: {
      nodes: [
        { op: 'ReduceMax', inputs: ['X'], outputs: ['most'], attributes: { keepdims: 0 } },
        { op: 'Cast', inputs: ['most'], outputs: ['turns'], attributes: { to: 7 } },
        {
          op: 'Loop',
          inputs: ['turns', 'yes', 'seed'],
          outputs: ['m_final'],
          attributes: { body: encodeGraph(body, 'body') },
        },
        { op: 'ReduceMax', inputs: ['m_final'], outputs: ['top'], attributes: { keepdims: 0 } },
        { op: 'Mul', inputs: ['top', 'zero'], outputs: ['nothing'] },
        { op: 'Add', inputs: ['X', 'nothing'], outputs: ['Y'] },
      ],
      inputs: [batch('X', 'FLOAT', 1)],
      outputs: [batch('Y', 'FLOAT', 1)],
      constants: [
        { name: 'yes', type: 'BOOL', dims: [], values: [1] },
        { name: 'zero', type: 'FLOAT', dims: [], values: [0] },
        { name: 'seed', type: 'FLOAT', dims: [64, 64], values: new Array(64 * 64).fill(0.01) },
      ],
    },
  };
}

/** An ensemble that passes X to one model and returns Y. */
const inFrontOf = (model: string): TestModel => ({
  config: `platform: "ensemble" max_batch_size: 1 ${io('TYPE_FP32', '1')}
ensemble_scheduling { step [
  { model_name: "${model}" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } }
] }`,
});

/** SUM of a ragged input: the network gets one flat tensor, and the end of each request in it. */
const ragged: TestModel = {
  config: `backend: "onnxruntime" max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ENDS" data_type: TYPE_INT32 source_input: "X" } ]
output [ { name: "SUM" data_type: TYPE_FP32 dims: [ 1 ] } ]
dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 60000000 }
instance_group [ { kind: KIND_CPU count: 1 } ]`,
  graph: {
    // Running sums at the ends, minus the running sums at the ends before.
    nodes: [
      { op: 'CumSum', inputs: ['X', 'axis'], outputs: ['running'] },
      { op: 'Cast', inputs: ['ENDS'], outputs: ['ends'], attributes: { to: 7 } },
      { op: 'Sub', inputs: ['ends', 'one'], outputs: ['last'] },
      { op: 'Gather', inputs: ['running', 'last'], outputs: ['upto'], attributes: { axis: 0 } },
      { op: 'Pad', inputs: ['upto', 'pads'], outputs: ['shifted_long'] },
      { op: 'Shape', inputs: ['ends'], outputs: ['count'] },
      { op: 'Slice', inputs: ['shifted_long', 'zero1', 'count'], outputs: ['before'] },
      { op: 'Sub', inputs: ['upto', 'before'], outputs: ['sums'] },
      { op: 'Unsqueeze', inputs: ['sums', 'axes'], outputs: ['SUM'] },
    ],
    inputs: [
      { name: 'X', type: 'FLOAT', dims: ['T'] },
      { name: 'ENDS', type: 'INT32', dims: ['N'] },
    ],
    outputs: [batch('SUM', 'FLOAT', 1)],
    constants: [
      { name: 'axis', type: 'INT32', dims: [], values: [0] },
      { name: 'one', type: 'INT64', dims: [], values: [1] },
      { name: 'pads', type: 'INT64', dims: [2], values: [1, 0] },
      { name: 'zero1', type: 'INT64', dims: [1], values: [0] },
      { name: 'axes', type: 'INT64', dims: [1], values: [1] },
    ],
  },
};

const add: TestModel = {
  config: `backend: "onnxruntime" max_batch_size: 4
input [ { name: "A" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "B" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "SUM" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "DIFFERENCE" data_type: TYPE_FP32 dims: [ -1 ] } ]`,
  graph: {
    nodes: [
      { op: 'Add', inputs: ['A', 'B'], outputs: ['SUM'] },
      { op: 'Sub', inputs: ['A', 'B'], outputs: ['DIFFERENCE'] },
    ],
    inputs: [batch('A', 'FLOAT', 'T'), batch('B', 'FLOAT', 'T')],
    outputs: [batch('SUM', 'FLOAT', 'T'), batch('DIFFERENCE', 'FLOAT', 'T')],
  },
};

const one = 'instance_group [ { kind: KIND_CPU count: 1 } ]';

export const testModels: Readonly<Record<string, TestModel>> = {
  ...sequenceModels,
  add,
  ragged,
  /** The same network, one request at a time. */
  ragged_alone: { ...ragged, config: ragged.config.replace(/dynamic_batching.*\n/, '') },
  identity_fp32: identity('FLOAT', `backend: "onnxruntime" max_batch_size: 8 ${io('TYPE_FP32')}`),
  identity_int64: identity('INT64', `backend: "onnxruntime" max_batch_size: 8 ${io('TYPE_INT64')}`),
  identity_text: identity('STRING', `backend: "onnxruntime" max_batch_size: 8 ${io('TYPE_STRING')}`),
  identity_fp16: identity('FLOAT16', `backend: "onnxruntime" max_batch_size: 8 ${io('TYPE_FP16')}`),
  identity_bool: identity('BOOL', `backend: "onnxruntime" max_batch_size: 8 ${io('TYPE_BOOL')}`),
  /** No batching: the shape is exactly what the configuration says. */
  whole: {
    config: `backend: "onnxruntime" ${io('TYPE_FP32', '2, -1')}`,
    graph: {
      nodes: [{ op: 'Identity', inputs: ['X'], outputs: ['Y'] }],
      inputs: [{ name: 'X', type: 'FLOAT', dims: [2, 'T'] }],
      outputs: [{ name: 'Y', type: 'FLOAT', dims: [2, 'T'] }],
    },
  },
  /** A batch leaves when it is full; the delay is so long that nothing else can be the reason. */
  full_batches: identity(
    'FLOAT',
    `backend: "onnxruntime" max_batch_size: 4 ${io('TYPE_FP32')} ${one}
dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 60000000 }`,
  ),
  slow: slow(
    `backend: "onnxruntime" max_batch_size: 8 ${io('TYPE_FP32', '1')} ${one}
dynamic_batching { }`,
  ),
  slow_priority: slow(
    `backend: "onnxruntime" max_batch_size: 1 ${io('TYPE_FP32', '1')} ${one}
dynamic_batching {
  priority_levels: 2 default_priority_level: 2
  default_queue_policy { max_queue_size: 64 }
  priority_queue_policy { key: 1 value { max_queue_size: 2 } }
}`,
  ),
  slow_timeout: slow(
    `backend: "onnxruntime" max_batch_size: 1 ${io('TYPE_FP32', '1')} ${one}
dynamic_batching { default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 60000000 allow_timeout_override: true } }`,
  ),
  slow_delay: slow(
    `backend: "onnxruntime" max_batch_size: 1 ${io('TYPE_FP32', '1')} ${one}
dynamic_batching { default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 60000000 allow_timeout_override: true } }`,
  ),
  /** Ensembles of one step: their priorities and timeouts apply to it. */
  whole_priority: inFrontOf('slow_priority'),
  whole_timeout: inFrontOf('slow_timeout'),
  /** A table of two: any other index makes the network itself fail. Three requests make a batch. */
  index: {
    config: `backend: "onnxruntime" max_batch_size: 8 ${io('TYPE_FP32', '1')} ${one}
dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 60000000 }`,
    graph: {
      nodes: [
        { op: 'Cast', inputs: ['X'], outputs: ['at'], attributes: { to: 7 } },
        { op: 'Gather', inputs: ['table', 'at'], outputs: ['Y'], attributes: { axis: 0 } },
      ],
      inputs: [batch('X', 'FLOAT', 1)],
      outputs: [batch('Y', 'FLOAT', 1)],
      constants: [{ name: 'table', type: 'FLOAT', dims: [2], values: [10, 20] }],
    },
  },
  /** ((A + B) + B), and A - B from the first step. */
  twice: {
    config: `platform: "ensemble" max_batch_size: 4
input [ { name: "P" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "Q" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "TOTAL" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "FIRST_DIFFERENCE" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "add" model_version: -1
    input_map { key: "A" value: "half" } input_map { key: "B" value: "Q" }
    output_map { key: "SUM" value: "TOTAL" } },
  { model_name: "add" model_version: -1
    input_map { key: "A" value: "P" } input_map { key: "B" value: "Q" }
    output_map { key: "SUM" value: "half" } output_map { key: "DIFFERENCE" value: "FIRST_DIFFERENCE" } }
] }`,
  },
};

/** Writes the models as a repository: `<name>/config.pbtxt`, `<name>/1/model.onnx`. */
export async function writeRepository(
  folder: string,
  models: Readonly<Record<string, TestModel>> = testModels,
): Promise<void> {
  for (const [name, { config, graph }] of Object.entries(models)) {
    await mkdir(path.join(folder, name, '1'), { recursive: true });
    await writeFile(path.join(folder, name, 'config.pbtxt'), `name: "${name}"\n${config}\n`);
    if (graph) await writeFile(path.join(folder, name, '1', 'model.onnx'), encodeModel(graph));
  }
}
