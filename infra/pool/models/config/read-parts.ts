// Which models of a repository a model is made of.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { limits } from '../../../../shared/limits.ts';
import { parseText } from './parse-text.ts';
import type { ModelConfig } from './schema.ts';

const CONFIG = 'config.pbtxt';

/** What stands in the folder, `undefined` when it is no model. Rejects when it cannot be understood. */
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

/** Those models and the steps of what is an ensemble among them, and theirs. Rejects what cannot be followed. */
export async function followSteps(repository: string, models: readonly string[]): Promise<string[]> {
  // A set is walked over what is added meanwhile, too.
  const found = new Set(models);
  for (const model of found) {
    const config = await readConfig(path.join(repository, model));
    for (const { model_name: step } of config?.ensemble_scheduling?.step ?? []) {
      if (step === '' || step.startsWith('.') || step !== path.basename(step))
        throw new Error(`${model}: the step ${JSON.stringify(step)} is no name of a model`);
      found.add(step);
    }
    if (found.size > limits.repositoryModels.value)
      throw new Error(`${model} is made of more than ${limits.repositoryModels.value} models`);
  }
  return [...found];
}
