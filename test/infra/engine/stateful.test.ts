import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { VersionStatistics } from '../../../infra/pool/engine/batch/statistics.ts';
import { loadNetwork } from '../../../infra/pool/engine/model/load-network.ts';
import { readModel } from '../../../infra/pool/engine/model/read-model.ts';
import type { Served } from '../../../infra/pool/engine/model/served.ts';
import { openInstance } from '../../../infra/pool/engine/run/instance.ts';
import { fp32Tensor, readFp32, type Tensor } from '../../../shared/kserve/tensor.ts';
import type { Graph } from '../../contract/engine/onnx-writer.ts';
import { writeRepository } from '../../contract/engine/test-models.ts';

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const act of undo.splice(0).reverse()) await act();
});

async function folder(config: string, graph: Graph): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'auricle-stateful-'));
  undo.push(() => rm(made, { recursive: true, force: true }));
  await writeRepository(made, { m: { config: `backend: "onnxruntime" ${config}`, graph } });
  return made;
}

async function load(config: string, graph: Graph) {
  const read = await readModel(await folder(config, graph), 'm');
  if (!read.ok) throw new Error(read.refusal.reason);
  const loaded = await loadNetwork(read.value, 1, new VersionStatistics(), 1);
  if (loaded.ok) undo.push(() => loaded.value.close());
  return loaded;
}

async function serve(...given: Parameters<typeof load>): Promise<Served> {
  const loaded = await load(...given);
  if (!loaded.ok) throw new Error(loaded.refusal.reason);
  return loaded.value;
}

const refusal = async (...given: Parameters<typeof load>) => {
  const loaded = await load(...given);
  return loaded.ok ? '' : loaded.refusal.reason;
};

async function ask(served: Served, id: number, input: Tensor, flags: { start?: boolean; end?: boolean } = {}) {
  const mark = { id, start: flags.start ?? false, end: flags.end ?? false };
  const answer = await served.infer({
    inputs: [input],
    outputs: [],
    priority: 0,
    timeoutUs: 0,
    signal: undefined,
    mark,
  });
  if (!answer.ok) return answer.refusal.text;
  return answer.value.outputs.map((tensor) => {
    const values = readFp32(tensor);
    return values.ok ? [...values.value] : [];
  });
}

const START = { start: true };
const END = { end: true };
const row = (...values: number[]) => fp32Tensor('X', Float32Array.from(values), [1, values.length]);
const float = (name: string, ...dims: (number | string)[]) => ({ name, type: 'FLOAT' as const, dims });

/** S = S + X. */
const adding: Graph = {
  nodes: [
    { op: 'Add', inputs: ['S', 'X'], outputs: ['T'] },
    { op: 'Identity', inputs: ['T'], outputs: ['Y'] },
  ],
  inputs: [float('X', 'N', 2), float('S', 'N', 2)],
  outputs: [float('Y', 'N', 2), float('T', 'N', 2)],
};
const io = (dims: string) =>
  `input { name: "X" data_type: TYPE_FP32 dims: ${dims} } output { name: "Y" data_type: TYPE_FP32 dims: ${dims} }`;
const state = (dims: string, more = '') =>
  `state { input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: ${dims} ${more} }`;
const oldest = 'oldest { max_candidate_sequences: 4 } max_sequence_idle_microseconds: 60000000';

/** S = S with X behind it: a state that grows. */
const growing: Graph = {
  nodes: [
    { op: 'Concat', inputs: ['S', 'X'], outputs: ['T'], attributes: { axis: 1 } },
    { op: 'Identity', inputs: ['T'], outputs: ['Y'] },
  ],
  inputs: [float('X', 'N', 'A'), float('S', 'N', 'B')],
  outputs: [float('Y', 'N', 'C'), float('T', 'N', 'D')],
};

describe('A5: models with implicit state', () => {
  it('outputs a state and refuses one with a file', async () => {
    const output = 'output { name: "T" data_type: TYPE_FP32 dims: 2 }';
    const config = (initial = '') =>
      `max_batch_size: 4 ${io('2')} ${output} sequence_batching { ${oldest} ${state('2', initial)} }`;
    const served = await serve(config(), adding);
    expect(await ask(served, 1, row(1, 2), START)).toEqual([
      [1, 2],
      [1, 2],
    ]);
    const file = 'initial_state { name: "start" data_type: TYPE_FP32 dims: 2 data_file: "start.bin" }';
    await expect(refusal(config(file), adding)).rejects.toThrow('zeroes only');
  });

  it('without batching one request runs at a time on whole states', async () => {
    const whole: Graph = {
      ...adding,
      inputs: [float('X', 2), float('S', 2)],
      outputs: [float('Y', 2), float('T', 2)],
    };
    const served = await serve(`${io('2')} sequence_batching { ${oldest} ${state('2')} }`, whole);
    const x = fp32Tensor('X', Float32Array.of(1, 2), [2]);
    const both = await Promise.all([1, 2].map((id) => ask(served, id, x, START)));
    expect(both).toEqual([[[1, 2]], [[1, 2]]]);
    expect(await ask(served, 2, x, END)).toEqual([[2, 4]]);
    expect(await ask(served, 1, x, END)).toEqual([[2, 4]]);
  });

  it('growing states of different lengths run one by one', async () => {
    const served = await serve(`max_batch_size: 4 ${io('-1')} sequence_batching { ${oldest} ${state('-1')} }`, growing);
    // A free dimension starts at 1, as in Triton.
    expect(await ask(served, 1, row(1), START)).toEqual([[0, 1]]);
    const both = await Promise.all([ask(served, 1, row(2)), ask(served, 2, row(5), START)]);
    expect(both).toEqual([[[0, 1, 2]], [[0, 5]]]);
    const again = await Promise.all([ask(served, 1, row(3), END), ask(served, 2, row(6), END)]);
    expect(again).toEqual([[[0, 1, 2, 3]], [[0, 5, 6]]]);
  });

  it('a warm-up leaves no trace', async () => {
    const warm =
      'model_warmup { name: "w" batch_size: 3 inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } }';
    const served = await serve(
      `max_batch_size: 4 ${io('2')} sequence_batching { ${oldest} ${state('2')} } ${warm}`,
      adding,
    );
    expect(served.sequences).toBe(0);
    expect(await ask(served, 1, row(1, 2), START)).toEqual([[1, 2]]);
  });

  it('refuses to load states that the network lacks or defines otherwise', async () => {
    const config = (batching: string) => `max_batch_size: 4 ${io('2')} sequence_batching { ${batching} }`;
    expect(await refusal(config(''), adding)).toContain("needs an input 'S'");
    expect(await refusal(config(state('3')), adding)).toContain("'S' has the shape [-1,2] in the model");
    expect(await refusal(config(state('2').replace('"T"', '"U"')), adding)).toContain("no tensor 'U'");
    expect(await refusal(config(state('2').replace('TYPE_FP32', 'TYPE_INT32')), adding)).toContain("'S' is TYPE_FP32");
    const start = 'control_input { name: "BEGIN" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } }';
    expect(await refusal(config(`${state('2')} ${start}`), adding)).toContain("no tensor 'BEGIN'");
  });

  it('an instance with a lost state reports it instead of restarting', async () => {
    const made = await folder(`max_batch_size: 4 ${io('2')}`, adding);
    const opened = await openInstance({
      modelPath: path.join(made, 'm/1/model.onnx'),
      intraThreads: 1,
      interThreads: 1,
      batched: true,
      states: [{ input: 'S', output: 'T', datatype: 'FP32', dims: [2], initial: new Uint8Array(8) }],
    });
    if (!opened.ok) throw new Error(opened.refusal.reason);
    undo.push(() => opened.value.close());
    const run = (slot: number, start: boolean) => opened.value.run([row(1, 2)], ['Y'], [{ slot, start, end: false }]);
    expect((await run(0, true)).ok).toBe(true);
    expect((await run(0, false)).ok).toBe(true);
    expect(await run(1, false)).toMatchObject({ ok: false, refusal: { lost: true } });
    opened.value.forget([0]);
    expect(await run(0, false)).toMatchObject({ ok: false, refusal: { lost: true } });
  });
});
