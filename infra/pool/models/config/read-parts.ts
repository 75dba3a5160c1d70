// Models of a repository that another model uses.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parseText } from './parse-text.ts';
import type { ModelConfig } from './schema.ts';

/** Directories of a model repository that are read. */
export const REPOSITORY_MODELS_MAX = 256;

const CONFIG = 'config.pbtxt';

/** Reads the configuration of a folder; `undefined` when it is no model. Rejects an invalid one. */
export async function readConfig(folder: string): Promise<ModelConfig | undefined> {
  const text = await readFile(path.join(folder, CONFIG), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const parsed = parseText(text);
  if (!parsed.ok) throw new Error(`${CONFIG}: ${parsed.refusal.reason}`);
  return parsed.value;
}

/** Returns the models and, recursively, the steps of ensembles and the models of live streams. Rejects unreadable ones. */
export async function followSteps(repository: string, models: readonly string[]): Promise<string[]> {
  // Iteration of a Set includes later additions.
  const found = new Set(models);
  for (const model of found) {
    const config = await readConfig(path.join(repository, model));
    const live = config?.parameters?.stream_model?.string_value;
    const steps = (config?.ensemble_scheduling?.step ?? []).map(({ model_name: step }) => step);
    for (const step of live === undefined ? steps : [...steps, live]) {
      if (step === '' || step.startsWith('.') || step !== path.basename(step))
        throw new Error(`${model}: the step ${JSON.stringify(step)} is no name of a model`);
      found.add(step);
    }
    if (found.size > REPOSITORY_MODELS_MAX)
      throw new Error(`${model} is made of more than ${REPOSITORY_MODELS_MAX} models`);
  }
  return [...found];
}
