import { z } from 'zod';
import { REPOSITORY_MODELS_MAX } from '../../models/config/read-parts.ts';
import type { EngineQueue } from './level.ts';

/** The part of a model's configuration that says where its requests wait; 64-bit numbers may be text. */
const queueConfig = z.object({
  ensemble_scheduling: z.object({ step: z.array(z.object({ model_name: z.string() })) }).optional(),
  dynamic_batching: z.object({ priority_levels: z.coerce.number().int().nonnegative().default(0) }).optional(),
});

/**
 * The queues behind a model, as the engine has configured it: its own, or those of an ensemble's steps and their steps.
 * `configOf` asks the engine. Rejects when it does not say.
 */
export async function readQueues(model: string, configOf: (model: string) => Promise<unknown>): Promise<EngineQueue[]> {
  const queues: EngineQueue[] = [];
  // A set is walked over what is added meanwhile, too.
  const names = new Set([model]);
  for (const name of names) {
    const { ensemble_scheduling, dynamic_batching } = queueConfig.parse(await configOf(name));
    for (const { model_name: step } of ensemble_scheduling?.step ?? []) names.add(step);
    if (!ensemble_scheduling) queues.push({ model: name, levels: dynamic_batching?.priority_levels ?? 0 });
    if (names.size > REPOSITORY_MODELS_MAX) throw new Error('too many steps');
  }
  return queues;
}
