import type { Message, ModelConfig } from './schema.ts';

/**
 * Lists configured features that a CPU lacks. Such a model still answers correctly, so it loads; the list is
 * logged once and returned beside the configuration, which explains an idle GPU.
 */
export function listUnhonoured(config: ModelConfig): string[] {
  const found = [...instanceFields(config), ...optimizationFields(config.optimization)];
  if (config.runtime) found.push('runtime: only the built-in ONNX Runtime exists');
  if (config.response_cache?.enable) found.push('response_cache: responses are never cached');
  if (config.model_operations) found.push('model_operations: custom operator libraries are not loaded');
  if (Object.keys(config.metric_tags).length > 0) found.push('metric_tags: labels are model and version');
  if (config.model_metrics) found.push('model_metrics: there are no histograms to configure');
  if (Object.keys(config.cc_model_filenames).length > 0) found.push('cc_model_filenames: there is no GPU');
  if (config.ensemble_scheduling?.max_inflight_requests) found.push('ensemble_scheduling.max_inflight_requests');
  for (const { name, optional } of config.input) {
    if (optional) found.push(`input '${name}' optional: every input must be given`);
  }
  for (const { name, label_filename } of config.output) {
    if (label_filename) found.push(`output '${name}' label_filename: there is no classification`);
  }
  for (const state of config.sequence_batching?.state ?? []) {
    const place = `sequence_batching state '${state.input_name}'`;
    if (state.use_same_buffer_for_input_output) found.push(`${place} use_same_buffer_for_input_output`);
    if (state.use_growable_memory) found.push(`${place} use_growable_memory: there is no GPU`);
  }
  for (const key of backendParameters) {
    if (Object.hasOwn(config.parameters, key)) found.push(`parameters '${key}'`);
  }
  return found;
}

/** Parameters that Triton's ONNX Runtime backend acts on; all others belong to the model's owner. */
const backendParameters = [
  'execution_mode',
  'enable_mem_arena',
  'enable_mem_pattern',
  'memory.enable_memory_arena_shrinkage',
  'session.use_device_allocator_for_initializers',
  'cudnn_conv_algo_search',
  'gpu_mem_limit',
  'arena_extend_strategy',
];

function instanceFields({ instance_group }: ModelConfig): string[] {
  const found: string[] = [];
  for (const { name, kind, gpus, profile, passive, host_policy, rate_limiter, secondary_devices } of instance_group) {
    const place = `instance_group '${name}'`;
    if (kind === 'KIND_GPU') found.push(`${place} KIND_GPU: runs on the CPU`);
    if (kind === 'KIND_MODEL') found.push(`${place} KIND_MODEL: runs on the CPU`);
    if (gpus.length > 0) found.push(`${place} gpus`);
    if (profile.length > 0) found.push(`${place} profile`);
    if (passive) found.push(`${place} passive: takes no requests and no memory`);
    if (host_policy) found.push(`${place} host_policy`);
    if (rate_limiter) found.push(`${place} rate_limiter`);
    if (secondary_devices.length > 0) found.push(`${place} secondary_devices`);
  }
  return found;
}

function optimizationFields(optimization: Message<'Optimization'> | undefined): string[] {
  if (!optimization) return [];
  const { graph, priority, cuda, execution_accelerators: accelerators } = optimization;
  const found: string[] = [];
  const note = (given: unknown, text: string) => given && found.push(`optimization.${text}`);
  note(graph?.level, 'graph.level: all optimisations are always on');
  note(priority !== 'PRIORITY_DEFAULT', 'priority');
  note(cuda, 'cuda');
  for (const { name } of accelerators?.gpu_execution_accelerator ?? []) {
    found.push(`optimization.execution_accelerators.gpu '${name}'`);
  }
  for (const { name } of accelerators?.cpu_execution_accelerator ?? []) {
    found.push(`optimization.execution_accelerators.cpu '${name}'`);
  }
  note(optimization.input_pinned_memory, 'input_pinned_memory');
  note(optimization.output_pinned_memory, 'output_pinned_memory');
  note(optimization.gather_kernel_buffer_threshold, 'gather_kernel_buffer_threshold');
  note(optimization.eager_batching, 'eager_batching');
  return found;
}
