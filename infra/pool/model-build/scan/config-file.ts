import { ok } from '../../../../shared/result.ts';
import { plainPath } from '../../models/config/names.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { nameShape } from '../archive/manifest.ts';
import { type BuildResult, problem } from '../problem.ts';

/** Parameters of an ensemble that name files beside it. */
export const partParameters = ['vocabulary', 'lexicon', 'language_model'] as const;

/** Backends and platforms that only compute an ONNX file; others run code, whatever their file is called. */
const BACKENDS = new Set(['', 'onnxruntime']);
const PLATFORMS = new Set(['', 'onnxruntime_onnx', 'ensemble']);

/** Reports whether a name is a single folder of the repository. */
export const isFolderName = (name: string): boolean => nameShape.safeParse(name).success && !name.includes('/');

/**
 * Checks that a configuration of an ONNX network or an ensemble loads no other code and names no file outside
 * its own folder. A part may lie in another folder of the repository if `isScanned` says that the same scan
 * covers it: precisions of one network share a vocabulary.
 */
export function checkConfig(
  config: ModelConfig,
  name: string,
  isScanned: (part: string) => boolean = () => false,
): BuildResult<undefined> {
  const { backend, platform, runtime } = config;
  if (!BACKENDS.has(backend) || !PLATFORMS.has(platform) || runtime !== '') {
    return problem('unsafe', `${name} runs ${JSON.stringify(runtime || backend || platform)}, which is on no list`);
  }
  if ((config.model_operations?.op_library_filename.length ?? 0) > 0) {
    return problem('unsafe', `${name} loads libraries of operators`);
  }
  if ((config.model_repository_agents?.agents.length ?? 0) > 0) {
    return problem('unsafe', `${name} wants repository agents, which run before the model is read`);
  }
  const file = [...filesIn(config), ...partsIn(config).filter((one) => !isScanned(one))].find(
    (one) => plainPath(one) !== one,
  );
  if (file !== undefined) return problem('unsafe', `${name} names ${JSON.stringify(file)}, which leads elsewhere`);
  const steps = config.ensemble_scheduling?.step.map((step) => step.model_name) ?? [];
  const live = config.parameters.stream_model?.string_value;
  const model = [...steps, ...(live === undefined ? [] : [live])].find((one) => !isFolderName(one));
  return model === undefined
    ? ok(undefined)
    : problem('unsafe', `${name} names the model ${JSON.stringify(model)}, which is no folder of a repository`);
}

/** Returns the paths that an agent opens, relative to the folder of the model. */
const partsIn = (config: ModelConfig): string[] =>
  partParameters
    .map((key) => config.parameters[key]?.string_value)
    .filter((file): file is string => file !== undefined && file !== '');

/** Returns the paths that an engine opens. */
function filesIn(config: ModelConfig): string[] {
  const { gpu_execution_accelerator: gpu = [], cpu_execution_accelerator: cpu = [] } =
    config.optimization?.execution_accelerators ?? {};
  return [
    config.default_model_filename,
    ...Object.values(config.cc_model_filenames),
    ...config.output.map(({ label_filename: label }) => label),
    ...(config.sequence_batching?.state ?? []).flatMap((one) => one.initial_state.map(({ data_file: file }) => file)),
    ...config.model_warmup.flatMap(({ inputs }) => Object.values(inputs).map((one) => one.input_data_file)),
    // Caches of engines are files, too; sizes and modes are plain names.
    ...[...gpu, ...cpu].flatMap(({ parameters }) => Object.values(parameters)),
  ].filter((file): file is string => file !== undefined && file !== '');
}
