import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { MiB } from '../../../../shared/bytes.ts';
import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { checkTensor, elementCount, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { assemble } from '../batch/assemble.ts';
import { controlTensors } from '../batch/sequence-controls.ts';
import type { Instance } from '../run/instance.ts';
import { type Checked, checkRequest } from './check-request.ts';

/** Values in one warm-up tensor. */
const WARMUP_ELEMENTS_MAX = 64 * MiB;

const mark = { id: 1, start: true, end: true, slot: -1 } as const;

/**
 * Runs every warm-up sample on every instance, before the model is ready. A failing sample fails the load.
 */
export async function warmUp(
  config: ModelConfig,
  directory: string,
  instances: readonly Instance[],
): Promise<Read<void>> {
  for (const sample of config.model_warmup) {
    const inputs: Tensor[] = [];
    for (const [name, input] of Object.entries(sample.inputs)) {
      const tensor = await sampleTensor({ config, sample, directory }, name, input);
      if (!tensor.ok) return tensor;
      inputs.push(tensor.value);
    }
    const checked = checkRequest(config, { inputs, outputs: [] });
    if (!checked.ok) return fault(`warm-up '${sample.name}': ${checked.refusal.reason}`);
    const runs = instances.map((instance) => runSample({ config, sample, inputs }, instance, checked.value));
    const failed = (await Promise.all(runs)).find((run) => !run.ok);
    if (failed) return failed;
  }
  return ok(undefined);
}

interface SampleInputs {
  readonly config: ModelConfig;
  readonly sample: Message<'Warmup'>;
  readonly inputs: readonly Tensor[];
}

async function runSample(
  { config, sample, inputs }: SampleInputs,
  instance: Instance,
  { outputs, size }: Checked,
): Promise<Read<void>> {
  // Each item gets a sequence of its own, which ends at once.
  const rows = Array.from({ length: config.sequence_batching ? size : 0 }, () => mark);
  for (let turn = 0; turn < Math.max(1, sample.count); turn++) {
    const own = assemble(config, [inputs]);
    if (!own.ok) return own;
    const run = await instance.run([...own.value, ...controlTensors(config, rows)], outputs, rows);
    if (!run.ok) return fault(`warm-up '${sample.name}' failed: ${run.refusal.reason}`);
  }
  return ok(undefined);
}

interface SampleSource {
  readonly config: ModelConfig;
  readonly sample: Message<'Warmup'>;
  /** Folder of the model. */
  readonly directory: string;
}

async function sampleTensor(
  { config, sample, directory }: SampleSource,
  name: string,
  input: Message<'WarmupInput'>,
): Promise<Read<Tensor>> {
  const datatype = fromConfigName(input.data_type)!;
  const shape = config.max_batch_size > 0 ? [Math.max(1, sample.batch_size), ...input.dims] : input.dims;
  const elements = elementCount(shape);
  if (elements === undefined || elements > WARMUP_ELEMENTS_MAX)
    return fault(`warm-up '${sample.name}': '${name}' is too large`);
  if (input.input_data_file !== undefined) {
    const file = input.input_data_file;
    if (path.basename(file) !== file)
      return fault(`warm-up '${sample.name}': '${file}' must be a file of the warmup folder`);
    try {
      const read = checkTensor({ name, datatype, shape, bytes: await readFile(path.join(directory, 'warmup', file)) });
      return read.ok ? read : fault(`warm-up '${sample.name}': ${read.refusal.reason}`);
    } catch {
      return fault(`warm-up '${sample.name}': '${file}' cannot be read`);
    }
  }
  // Zeroes also encode empty strings: each element is then a length of 0.
  const bytes = new Uint8Array(elements * (datatypes[datatype].bytes || 4));
  if (input.random_data && datatype !== 'BYTES') fillRandom(bytes, datatype);
  return ok({ name, datatype, shape, bytes });
}

/**
 * Fills floats with small finite values: random bits would include NaN and infinity, which no caller sends.
 */
function fillRandom(bytes: Uint8Array, datatype: Tensor['datatype']): void {
  const view = new DataView(bytes.buffer);
  const put = {
    FP32: (at: number) => view.setFloat32(at, Math.random(), true),
    FP64: (at: number) => view.setFloat64(at, Math.random(), true),
  };
  const width = datatypes[datatype].bytes;
  if (datatype !== 'FP32' && datatype !== 'FP64') return;
  for (let at = 0; at < bytes.byteLength; at += width) put[datatype](at);
}
