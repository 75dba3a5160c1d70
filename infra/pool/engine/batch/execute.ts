import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { type EngineRefusal, refuse } from '../refuse.ts';
import type { Instance, RunFault } from '../run/instance.ts';
import { assemble } from './assemble.ts';
import type { Job, Outcome } from './job.ts';
import { controlTensors } from './sequence-controls.ts';
import { startWanted } from './sequence-mark.ts';
import { split } from './split.ts';
import type { VersionStatistics } from './statistics.ts';

interface Run {
  readonly results: readonly (readonly Tensor[])[];
  readonly input: number;
  readonly infer: number;
  readonly output: number;
}

const nowNs = (): number => Number(process.hrtime.bigint());

async function attempt(config: ModelConfig, instance: Instance, jobs: readonly Job[]): Promise<Result<Run, RunFault>> {
  const began = nowNs();
  const inputs = assemble(
    config,
    jobs.map(({ request }) => request.inputs),
  );
  if (!inputs.ok) return inputs;
  const outputs = config.output
    .map(({ name }) => name)
    .filter((name) => jobs.some(({ request }) => request.outputs.includes(name)));
  const places = jobs.flatMap(({ request: { place } }) => place ?? []);
  const tensors = [...inputs.value, ...controlTensors(config, places)];
  const assembled = nowNs();
  const executed = await instance.run(tensors, outputs, places);
  if (!executed.ok) return executed;
  const back = nowNs();
  const shares = jobs.map(({ request: { inputs: given, size } }) => ({ inputs: given, size }));
  const results = split(config, executed.value.tensors, shares);
  if (!results.ok) return results;
  const infer = executed.value.inferNs;
  // Moves of tensors to the thread and back count as "input": they precede the network's start.
  const moving = Math.max(0, back - assembled - infer);
  return ok({ results: results.value, input: assembled - began + moving, infer, output: nowNs() - back });
}

export interface Execution {
  /** ms of the engine's clock. */
  readonly startedAt: number;
  readonly statistics: VersionStatistics;
}

/**
 * Runs a batch and returns the outcome of each job. After a failed batch its jobs run one by one, so that a
 * request that the network rejects does not fail the others.
 */
export async function execute(
  config: ModelConfig,
  instance: Instance,
  jobs: readonly Job[],
  execution: Execution,
): Promise<Outcome[]> {
  const { startedAt, statistics } = execution;
  const made = await attempt(config, instance, jobs);
  if (!made.ok && jobs.length > 1) {
    const outcomes: Outcome[] = [];
    for (const job of jobs) outcomes.push(...(await execute(config, instance, [job], execution)));
    return outcomes;
  }
  if (!made.ok) return jobs.map((job) => failed(config, job, made.refusal));
  const { results, input, infer, output } = made.value;
  const size = jobs.reduce((sum, job) => sum + job.size, 0);
  statistics.executed(size, { input, infer, output });
  return jobs.map((job, index) => {
    const queue = Math.max(0, (startedAt - (job.request.arrivedAt ?? job.enqueuedAt)) * 1000);
    const wanted = results[index]!.filter(({ name }) => job.request.outputs.includes(name));
    return ok({ outputs: wanted, durations: { queue, input, infer, output } });
  });
}

/**
 * Maps a lost state to Triton's "must start" error, which clients recognise: the sequence has to begin again.
 */
function failed(
  config: ModelConfig,
  { request }: Job,
  { reason, lost }: RunFault,
): { ok: false; refusal: EngineRefusal } {
  if (lost && request.place) return refuse('INVALID_ARG', startWanted(request.place, config.name));
  return refuse('INTERNAL', reason, 'BACKEND');
}
