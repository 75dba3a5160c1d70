import { printText } from '../../models/config/print-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';

/** Returns the text of a configuration in which the model `part` and each model that it names are renamed. */
export function renameConfig(config: ModelConfig, part: string, rename: (part: string) => string): string {
  const { ensemble_scheduling: ensemble, parameters } = config;
  const live = parameters.stream_model;
  return printText({
    ...config,
    name: rename(part),
    ...(ensemble && {
      ensemble_scheduling: {
        ...ensemble,
        step: ensemble.step.map((step) => ({ ...step, model_name: rename(step.model_name) })),
      },
    }),
    ...(live && {
      parameters: { ...parameters, stream_model: { ...live, string_value: rename(live.string_value) } },
    }),
  });
}
