import { printText } from '../../models/config/print-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';

/**
 * Returns the text of a configuration in which the model `part` and each model that it names are renamed: steps, the
 * streaming model, and folders of files (`../NAME/tokens.txt`).
 */
export function renameConfig(config: ModelConfig, part: string, rename: (part: string) => string): string {
  const { ensemble_scheduling: ensemble } = config;
  const parameters = Object.entries(config.parameters).map(([key, value]) => {
    const text = value.string_value;
    const renamed =
      key === 'stream_model' ? rename(text) : text.replace(/^(\.\.\/)([^/]+)/, (_, up, of) => up + rename(of));
    return [key, { ...value, string_value: renamed }] as const;
  });
  return printText({
    ...config,
    name: rename(part),
    ...(ensemble && {
      ensemble_scheduling: {
        ...ensemble,
        step: ensemble.step.map((step) => ({ ...step, model_name: rename(step.model_name) })),
      },
    }),
    parameters: Object.fromEntries(parameters),
  });
}
