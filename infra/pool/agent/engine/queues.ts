import { z } from 'zod';
import { REPOSITORY_MODELS_MAX } from '../../models/config/read-parts.ts';
import type { EngineQueue } from './level.ts';

/** The part of a model's configuration that names its steps and its queue; 64-bit numbers may be text. */
const modelConfig = z.object({
  ensemble_scheduling: z.object({ step: z.array(z.object({ model_name: z.string() })) }).optional(),
  dynamic_batching: z.object({ priority_levels: z.coerce.number().int().nonnegative().default(0) }).optional(),
});

type ConfigOf = (model: string) => Promise<unknown>;

/**
 * Returns the configurations of a model and, below an ensemble, of its steps and their steps, by name. `configOf`
 * queries the engine. Rejects when the engine does not answer.
 */
export async function readConfigs(model: string, configOf: ConfigOf) {
  const configs = new Map<string, z.infer<typeof modelConfig>>();
  // The loop over a set includes names that are added meanwhile.
  const names = new Set([model]);
  for (const name of names) {
    const config = modelConfig.parse(await configOf(name));
    configs.set(name, config);
    for (const { model_name: step } of config.ensemble_scheduling?.step ?? []) names.add(step);
    if (names.size > REPOSITORY_MODELS_MAX) throw new Error('too many steps');
  }
  return configs;
}

/** Returns the queues behind a model: its own, or those of an ensemble's steps and their steps. */
export async function readQueues(model: string, configOf: ConfigOf): Promise<EngineQueue[]> {
  return [...(await readConfigs(model, configOf))].flatMap(([name, { ensemble_scheduling, dynamic_batching }]) =>
    ensemble_scheduling ? [] : [{ model: name, levels: dynamic_batching?.priority_levels ?? 0 }],
  );
}
