import { access, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';
import { plainPath } from '../../models/config/names.ts';
import { instanceCount } from '../../models/config/settle.ts';
import type { VersionStatistics } from '../batch/statistics.ts';
import { systemClock } from '../clock.ts';
import { type Instance, openInstance } from '../run/instance.ts';
import { statesOf } from '../sequence/initial-state.ts';
import { matchInfo } from './match-info.ts';
import type { ModelFiles } from './read-model.ts';
import { serveNetwork } from './serve-network.ts';
import type { Served } from './served.ts';
import { warmUp } from './warm-up.ts';

/** Threads inside one instance. */
const ENGINE_THREADS_MAX = 16;

/**
 * Threads of one execution: the model's parameter, as Triton's ONNX Runtime backend spells it, or the
 * engine's setting.
 */
function threads(files: ModelFiles, key: string, usual: number): number {
  const requested = Number(files.config.parameters[key]?.string_value);
  return Number.isSafeInteger(requested) && requested > 0 ? Math.min(requested, ENGINE_THREADS_MAX) : usual;
}

async function openAll(count: number, open: () => Promise<Read<Instance>>): Promise<Read<Instance[]>> {
  const opened = await Promise.all(Array.from({ length: count }, open));
  const instances = opened.filter((one) => one.ok).map((one) => one.value);
  const failed = opened.find((one) => !one.ok);
  if (!failed) return ok(instances);
  await Promise.all(instances.map((instance) => instance.close()));
  return failed;
}

/** Returns the bytes of a version's files: the network and weights beside it. */
async function fileBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => path.join(parentPath, name));
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * Returns the memory of a version: each instance has the weights and a thread of its own. ONNX Runtime tells no size of
 * its buffers for activations, and the process' resident memory includes those of other models: neither is included.
 */
async function memoryOf(folder: string, instances: readonly Instance[]): Promise<number> {
  const weights = await fileBytes(folder);
  return instances.reduce((sum, { heapBytes }) => sum + weights + heapBytes, 0);
}

/** Opens every instance of one version, checks the file against its configuration, warms it up. */
export async function loadNetwork(
  files: ModelFiles,
  version: number,
  statistics: VersionStatistics,
  intraThreads: number,
): Promise<Read<Served>> {
  const began = performance.now();
  const file = files.config.default_model_filename;
  // A path out of the version directory would serve another version's file under this name.
  if (plainPath(file) !== file) return fault('default_model_filename leaves the version directory');
  const modelPath = path.join(files.directory, String(version), file);
  try {
    await access(modelPath);
  } catch {
    return fault(`unable to find '${version}/${file}'`);
  }
  const opened = await openAll(instanceCount(files.config), () =>
    openInstance({
      modelPath,
      intraThreads: threads(files, 'intra_op_thread_count', intraThreads),
      interThreads: threads(files, 'inter_op_thread_count', 1),
      batched: files.config.max_batch_size > 0,
      states: statesOf(files.config),
    }),
  );
  if (!opened.ok) return opened;
  const instances = opened.value;
  const config = matchInfo(files.config, instances[0]!.info);
  const warm = config.ok ? await warmUp(config.value, instances) : config;
  if (!warm.ok || !config.ok) {
    await Promise.all(instances.map((instance) => instance.close()));
    return warm.ok ? fault('unreachable') : warm;
  }
  const memoryBytes = await memoryOf(path.dirname(modelPath), instances);
  statistics.loadSeconds = (performance.now() - began) / 1000;
  return ok(serveNetwork(version, { config: config.value, instances, statistics, clock: systemClock }, memoryBytes));
}
