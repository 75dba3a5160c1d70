import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import { checkRules, ENGINE_INSTANCES_MAX } from './rules.ts';
import type { ModelConfig } from './schema.ts';
import { emptyMessage } from './value.ts';

export const isEnsemble = (config: ModelConfig): boolean => config.ensemble_scheduling !== undefined;

/** Completes `backend` and the older `platform` from each other. */
function settlePlatform(config: ModelConfig): Read<Pick<ModelConfig, 'platform' | 'backend'>> {
  if (isEnsemble(config)) {
    if (config.platform !== '' && config.platform !== 'ensemble') {
      return fault(`an ensemble must have platform 'ensemble', not '${config.platform}'`);
    }
    return ok({ platform: 'ensemble', backend: config.backend });
  }
  if (config.platform === 'ensemble') return fault("platform 'ensemble' needs ensemble_scheduling");
  const backend =
    config.backend || (config.platform === 'onnxruntime_onnx' || config.platform === '' ? 'onnxruntime' : '');
  if (backend === 'onnxruntime' && (config.platform === '' || config.platform === 'onnxruntime_onnx')) {
    return ok({ platform: 'onnxruntime_onnx', backend });
  }
  return fault(
    `backend '${config.backend}' platform '${config.platform}' is not one this engine runs (onnxruntime, ensemble)`,
  );
}

/** Triton's SEQUENCE_IDLE_DEFAULT_MICROSECONDS. */
const IDLE_MICROSECONDS = 1_000_000;

function settleSequences({
  sequence_batching: batching,
  max_batch_size,
}: ModelConfig): ModelConfig['sequence_batching'] {
  if (!batching) return undefined;
  const { oldest } = batching;
  const sizes = oldest?.preferred_batch_size ?? [];
  return {
    ...batching,
    max_sequence_idle_microseconds: batching.max_sequence_idle_microseconds || IDLE_MICROSECONDS,
    oldest: oldest && {
      ...oldest,
      preferred_batch_size: sizes.length === 0 && max_batch_size > 0 ? [max_batch_size] : sizes,
    },
  };
}

/** Returns the configuration as served: with Triton's defaults, and checked by its rules. */
export function settle(config: ModelConfig, directory: string): Read<ModelConfig> {
  if (config.name !== '' && config.name !== directory) {
    return fault(`unexpected directory name '${directory}' for model '${config.name}', they must be equal`);
  }
  const platform = settlePlatform(config);
  if (!platform.ok) return platform;
  const settled: ModelConfig = {
    ...config,
    ...platform.value,
    name: directory,
    version_policy: config.version_policy ?? emptyMessage('VersionPolicy'),
  };
  const policy = settled.version_policy;
  if (policy && !policy.latest && !policy.all && !policy.specific) {
    settled.version_policy = { ...policy, latest: { num_versions: 1 } };
  }
  const batching = config.dynamic_batching;
  if (batching && batching.preferred_batch_size.length === 0 && config.max_batch_size > 0) {
    settled.dynamic_batching = { ...batching, preferred_batch_size: [config.max_batch_size] };
  }
  settled.sequence_batching = settleSequences(config);
  if (!isEnsemble(config)) {
    settled.default_model_filename = config.default_model_filename || 'model.onnx';
    const groups = config.instance_group.length > 0 ? config.instance_group : [emptyMessage('InstanceGroup')];
    settled.instance_group = groups.map((group, index) => ({
      ...group,
      name: group.name || `${directory}_${index}`,
      count: group.count === 0 ? 1 : group.count,
      kind: group.kind === 'KIND_AUTO' ? 'KIND_CPU' : group.kind,
    }));
  }
  const complaint = checkRules(settled);
  return complaint === undefined ? ok(settled) : fault(complaint);
}

/** Returns the number of instances. Passive groups take no requests, so they get no thread. */
export function instanceCount(config: ModelConfig): number {
  const count = config.instance_group.reduce((sum, group) => sum + (group.passive ? 0 : group.count), 0);
  return Math.min(count, ENGINE_INSTANCES_MAX);
}

/** Returns the versions to serve, highest first, of those with a directory. */
export function chooseVersions(config: ModelConfig, present: readonly number[]): number[] {
  const sorted = [...present].sort((a, b) => b - a);
  const policy = config.version_policy;
  if (policy?.all) return sorted;
  if (policy?.specific) return sorted.filter((version) => policy.specific?.versions.includes(version));
  return sorted.slice(0, Math.max(1, policy?.latest?.num_versions ?? 1));
}
