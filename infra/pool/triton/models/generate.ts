import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseText } from '../../models/config/parse-text.ts';
import { followSteps } from '../../models/config/read-parts.ts';

const NETWORK = path.join(import.meta.dirname, 'network.py');
const DELAY = path.join(import.meta.dirname, 'delay.py');
const CONFIG = 'config.pbtxt';
const ONNX = /\b(?:platform|backend)\s*:\s*(?:"onnxruntime(?:_onnx)?"|'onnxruntime(?:_onnx)?')/g;

/**
 * A model's config.pbtxt for a Triton that has no ONNX Runtime backend: the Python backend, and everything else as it
 * was. Ensembles stay as they are. Throws when the configuration is not one for ONNX Runtime.
 */
function forPython(text: string): string {
  const before = parseText(text);
  if (!before.ok) throw new Error(before.refusal.reason);
  if (before.value.ensemble_scheduling) return text;
  let named = false;
  const changed = text.replace(ONNX, () => {
    if (named) return '';
    named = true;
    return 'backend: "python"';
  });
  const after = parseText(changed);
  if (!after.ok || after.value.backend !== 'python' || after.value.platform !== '')
    throw new Error('not a configuration for ONNX Runtime');
  if (after.value.input.length === 0 || after.value.output.length === 0)
    throw new Error('inputs and outputs must be written down: the Python backend does not read them from the network');
  if (!['', 'model.onnx'].includes(after.value.default_model_filename))
    throw new Error('the network must be called model.onnx');
  return changed;
}

/** Puts the model of an ONNX repository into a repository for Triton's Python backend, or replaces it there. */
export async function convertModel(from: string, to: string, name: string): Promise<void> {
  const text = await readFile(path.join(from, name, CONFIG), 'utf8');
  let config: string;
  try {
    config = forPython(text);
  } catch (error) {
    throw new Error(`model ${name}: ${(error as Error).message}`);
  }
  await cp(path.join(from, name), path.join(to, name), { recursive: true });
  await writeFile(path.join(to, name, CONFIG), config);
  const entries = await readdir(path.join(to, name), { withFileTypes: true });
  const versions = entries.filter((entry) => entry.isDirectory() && /^\d+$/.test(entry.name));
  // Triton wants a version folder of ensembles too, and git keeps no empty ones.
  if (versions.length === 0) await mkdir(path.join(to, name, '1'));
  for (const { name: version } of versions) {
    const files = await readdir(path.join(to, name, version));
    if (files.includes('model.onnx')) await cp(NETWORK, path.join(to, name, version, 'model.py'));
  }
}

/**
 * The same models for Triton's Python backend: the same names, tensors and networks, run by ONNX Runtime inside Python.
 * `from` and `to` are model repositories; a folder in `from` without a configuration is left out, and so are models
 * that those of `only` do not consist of.
 */
export async function convertRepository(from: string, to: string, only?: readonly string[]): Promise<string[]> {
  const wanted = only && (await followSteps(from, only));
  await mkdir(to, { recursive: true });
  const entries = await readdir(from, { withFileTypes: true, recursive: false });
  const names: string[] = [];
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    if (wanted && !wanted.includes(name)) continue;
    if (!(await readdir(path.join(from, name))).includes(CONFIG)) continue;
    await convertModel(from, to, name);
    names.push(name);
  }
  return names.sort();
}

export interface Delay {
  /** Time of one execution, in milliseconds. */
  readonly batchMs: number;
  /** Further time for each item in it, in milliseconds. */
  readonly itemMs: number;
  readonly maxBatchSize: number;
  /** Longest wait of a request for a batch, in microseconds. */
  readonly queueMicros: number;
  readonly instances: number;
}

/** A model that takes a known time: X FP32 [n, width] comes back as Y. What is measured with it is the server. */
export async function writeDelay(repository: string, name: string, delay: Delay): Promise<void> {
  const folder = path.join(repository, name);
  await mkdir(path.join(folder, '1'), { recursive: true });
  const parameter = (key: string, value: number) => `parameters { key: "${key}" value { string_value: "${value}" } }`;
  const config = `name: "${name}"
backend: "python"
max_batch_size: ${delay.maxBatchSize}
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
dynamic_batching {
  max_queue_delay_microseconds: ${delay.queueMicros}
  priority_levels: 4
  default_priority_level: 3
  default_queue_policy { max_queue_size: 4096 allow_timeout_override: true default_timeout_microseconds: 60000000 }
}
instance_group [ { kind: KIND_CPU count: ${delay.instances} } ]
${parameter('batch_ms', delay.batchMs)}
${parameter('item_ms', delay.itemMs)}
`;
  await writeFile(path.join(folder, CONFIG), config);
  await cp(DELAY, path.join(folder, '1', 'model.py'));
}
