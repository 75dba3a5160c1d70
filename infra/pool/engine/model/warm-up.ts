import { MiB } from '../../../../shared/bytes.ts';
import { datatypes, fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { elementCount, type Tensor } from '../../../../shared/kserve/tensor.ts';
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
export async function warmUp(config: ModelConfig, instances: readonly Instance[]): Promise<Read<void>> {
  for (const sample of config.model_warmup) {
    const inputs: Tensor[] = [];
    for (const [name, input] of Object.entries(sample.inputs)) {
      const tensor = zeroesOf(config, sample, name, input);
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

/** Returns the zeroes of an input, which also encode empty strings: each element is then a length of 0. */
function zeroesOf(
  { max_batch_size }: ModelConfig,
  { name: sample, batch_size }: Message<'Warmup'>,
  name: string,
  { data_type, dims }: Message<'WarmupInput'>,
): Read<Tensor> {
  const datatype = fromConfigName(data_type)!;
  const shape = max_batch_size > 0 ? [Math.max(1, batch_size), ...dims] : dims;
  const elements = elementCount(shape);
  if (elements === undefined || elements > WARMUP_ELEMENTS_MAX)
    return fault(`warm-up '${sample}': '${name}' is too large`);
  return ok({ name, datatype, shape, bytes: new Uint8Array(elements * (datatypes[datatype].bytes || 4)) });
}
