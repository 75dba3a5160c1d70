import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { ok } from '../../../../shared/result.ts';
import { parseText } from '../../models/config/parse-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { openBlob } from '../blob.ts';
import { type BuildResult, problem } from '../problem.ts';
import { scanOnnx } from '../scan/onnx-file.ts';

/** A model that computes features of audio, run as a server runs it for one request. */
export interface Featurizer {
  compute(sound: Float32Array): Promise<BuildResult<Readonly<Record<string, Tensor>>>>;
  close(): Promise<void>;
}

/**
 * Opens a model folder with inputs `AUDIO` and `AUDIO_LENGTH`, and the offsets of ragged requests if it has
 * them.
 */
export async function openFeaturizer(folder: string): Promise<BuildResult<Featurizer>> {
  const text = await readFile(path.join(folder, 'config.pbtxt'), 'utf8').catch(() => undefined);
  const config = text === undefined ? undefined : parseText(text);
  if (!config?.ok) return problem('unreadable', `${folder} is no model`);
  const { input, batch_input } = config.value;
  const wrong =
    input.find(({ name }) => name !== 'AUDIO' && name !== 'AUDIO_LENGTH') ??
    batch_input.find(({ kind }) => kind !== 'BATCH_ACCUMULATED_ELEMENT_COUNT');
  if (wrong || !input.some(({ name }) => name === 'AUDIO'))
    return problem('unsupported', `${folder} takes other inputs than AUDIO and AUDIO_LENGTH`);
  const file = path.join(folder, '1', config.value.default_model_filename || 'model.onnx');
  const opened = await openBlob(file, file).catch(() => undefined);
  if (!opened) return problem('unreadable', `${file} cannot be read`);
  const scanned = await scanOnnx(opened.blob).finally(opened.close);
  if (!scanned.ok) return scanned;
  const session = await InferenceSession.create(file, { intraOpNumThreads: 1 });
  const names = new Set(config.value.output.map(({ name }) => name));
  return ok({
    async compute(sound) {
      const given = await session.run(inputsOf(config.value, sound));
      return ok(Object.fromEntries(Object.entries(given).filter(([name]) => names.has(name))));
    },
    close: () => session.release(),
  });
}

function inputsOf({ input, batch_input, max_batch_size }: ModelConfig, sound: Float32Array): Record<string, Tensor> {
  const batched = max_batch_size > 0 ? [1] : [];
  const count = (type: string, dims: number[]) =>
    type === 'TYPE_FP32'
      ? new Tensor('float32', Float32Array.of(sound.length), dims)
      : new Tensor('int32', Int32Array.of(sound.length), dims);
  const inputs: Record<string, Tensor> = {};
  for (const { name, data_type, allow_ragged_batch } of input) {
    if (name === 'AUDIO')
      inputs[name] = new Tensor('float32', sound, [...(allow_ragged_batch ? [] : batched), sound.length]);
    else inputs[name] = count(data_type, [...batched, 1]);
  }
  for (const { target_name, data_type } of batch_input)
    for (const target of target_name) inputs[target] = count(data_type, [1]);
  return inputs;
}
