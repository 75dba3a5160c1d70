import { ok } from '../../../../shared/result.ts';
import type { Message } from '../../models/config/schema.ts';
import { emptyMessage } from '../../models/config/value.ts';
import type { Graph } from '../archive/manifest.ts';
import { type BuildResult, problem } from '../problem.ts';

/** Largest batch of a deployed model; its warm-up runs each size once. */
const DEPLOYED_BATCH_MAX = 1024;

/** Hardware that a model will run on. */
export interface Target {
  /** Target as given; further targets name a file in `configs/`. */
  readonly name: string;
  readonly kind: 'gpu' | 'mig' | 'cpu' | 'jetson';
  readonly gpus: readonly number[];
  /** Instances of each network: per GPU where there are GPUs, otherwise in all. */
  readonly instances: number;
  readonly accelerated: boolean;
  /** Share of a whole GPU, for MIG. */
  readonly share: number;
}

/** MIG profile name, which begins with its sevenths of a GPU: `3g.40gb`. */
const PROFILE = /^(\d)g\.\d+gb$/;
/** Workspace to build one network, bytes; an embedded board shares its memory with everything else. */
const WORKSPACE = { gpu: 4 * 2 ** 30, jetson: 512 * 2 ** 20 };
/** The largest batch on an embedded board. */
const JETSON_BATCH = 8;

/**
 * Parses `gpu`, `mig:3g.40gb`, `cpu`, `jetson`. In Triton `count` is for each listed GPU: one on four GPUs
 * makes four (A10).
 */
export function readTarget(
  name: string,
  { gpus, instances, accelerator }: { gpus?: string; instances?: string; accelerator?: string },
): BuildResult<Target> {
  const listed = gpus === undefined ? [0] : gpus.split(',').map(Number);
  if (gpus !== undefined && (!/^\d{1,2}(,\d{1,2})*$/.test(gpus) || new Set(listed).size !== listed.length)) {
    return problem('written', `--gpus ${gpus}: numbers of GPUs, separated by commas`);
  }
  if (instances !== undefined && !/^[1-9]\d?$/.test(instances))
    return problem('written', `--instances ${instances}: 1 to 99`);
  if (accelerator !== undefined && accelerator !== 'none')
    return problem('written', `--accelerator ${accelerator}: none, or left out`);
  const plain = { name, instances: Number(instances ?? 1), accelerated: accelerator !== 'none', share: 1 };
  if (name === 'gpu') return ok({ ...plain, kind: 'gpu', gpus: listed });
  if (name === 'cpu' || name === 'jetson') {
    if (gpus !== undefined && name === 'cpu') return problem('written', 'a CPU has no --gpus');
    return ok({ ...plain, kind: name, gpus: name === 'cpu' ? [] : listed });
  }
  const slices = PROFILE.exec(name.replace(/^mig:/, ''))?.[1];
  if (name.startsWith('mig:') && slices !== undefined && Number(slices) >= 1 && Number(slices) <= 7) {
    // A process sees one slice, as GPU 0.
    if (gpus !== undefined && gpus !== '0')
      return problem('written', 'a process sees one MIG slice, as GPU 0: one server for each slice');
    return ok({ ...plain, kind: 'mig', gpus: [0], share: Number(slices) / 7 });
  }
  return problem('written', `--target ${name}: gpu, mig:PROFILE (such as mig:3g.40gb), cpu or jetson`);
}

/** Returns the file name in `configs/` that Triton reads with `--model-config-name`. */
export const configName = ({ name }: Target): string => name.replace(/[^\w.]+/g, '-');

/** Returns the largest batch on a target: a slice of a GPU and a small board take less. */
export function batchOn({ kind, share }: Target, wanted: number): number {
  const most = Math.min(wanted, DEPLOYED_BATCH_MAX, kind === 'jetson' ? JETSON_BATCH : Number.POSITIVE_INFINITY);
  return kind === 'mig' ? Math.max(1, 2 ** Math.floor(Math.log2(Math.max(1, most * share)))) : most;
}

export function instanceGroup({ kind, gpus, instances }: Target): Message<'InstanceGroup'> {
  const group = { ...emptyMessage('InstanceGroup'), count: instances };
  return kind === 'cpu' ? { ...group, kind: 'KIND_CPU' } : { ...group, kind: 'KIND_GPU', gpus: [...gpus] };
}

/**
 * A3: TensorRT in 16 bits on GPUs, built there when the model is first loaded; on CPUs OpenVINO, whose CPU
 * part is oneDNN. Weights of 8 bits use ONNX Runtime's own kernels: both accelerators would compute other
 * results than were measured.
 */
export function optimization(
  { kind, accelerated, share }: Target,
  { precision }: Pick<Graph, 'precision'>,
  inFull: boolean,
): Message<'Optimization'> | undefined {
  const base = emptyMessage('Optimization');
  const accelerate = accelerated && precision !== 'int8';
  const pinned = { enable: true };
  if (kind === 'cpu') {
    const openvino = {
      ...emptyMessage('Accelerators'),
      cpu_execution_accelerator: [{ name: 'openvino', parameters: {} }],
    };
    return accelerate ? { ...base, execution_accelerators: openvino } : undefined;
  }
  const workspace = Math.round((kind === 'jetson' ? WORKSPACE.jetson : WORKSPACE.gpu) * share);
  const parameters = { precision_mode: inFull ? 'FP32' : 'FP16', max_workspace_size_bytes: String(workspace) };
  const tensorrt = { ...emptyMessage('Accelerators'), gpu_execution_accelerator: [{ name: 'tensorrt', parameters }] };
  return {
    ...base,
    ...(accelerate && { execution_accelerators: tensorrt }),
    // A board whose GPU shares the CPU's memory has nothing to copy.
    ...(kind !== 'jetson' && { input_pinned_memory: pinned, output_pinned_memory: pinned }),
  };
}

/**
 * Returns the batch sizes of the warm-up: on a GPU each power of two, since the first batch of a size is slow
 * there.
 */
export function warmSizes({ kind }: Target, largest: number): number[] {
  if (kind === 'cpu') return [...new Set([1, largest])];
  const sizes: number[] = [];
  for (let size = 1; size < largest; size *= 2) sizes.push(size);
  return [...sizes, largest];
}
