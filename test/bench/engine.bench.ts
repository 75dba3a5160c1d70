// The embedded engine beside Triton, with a network whose only property is how long it takes: what batching does to
// throughput, and what it costs in waiting.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from '../../infra/local/root.ts';
import { InstallProblem, installTriton } from '../../infra/pool/triton/install.ts';
import { convertRepository } from '../../infra/pool/triton/models/generate.ts';
import { startTriton } from '../../infra/pool/triton/start.ts';
import { statisticsMessage } from '../../shared/kserve/statistics.ts';
import { startEmbedded } from '../contract/engine/embedded.ts';
import { testModels, writeRepository } from '../contract/engine/test-models.ts';
import type { Bench } from './run.ts';

/** How long a request may wait for others, in milliseconds. */
const DELAYS = [0, 1, 5, 50];
/** Callers that each send the next request when the last was answered: few, who cannot fill a batch, and many. */
const CALLERS = [4, 32];
const BATCH_MAX = 16;
/** What one execution should take, in milliseconds, whatever is in it: as on a GPU that is not full. */
const EXECUTION_MS = 10;

interface Engine {
  readonly name: string;
  readonly url: string;
  stop(): Promise<unknown>;
}

const nameOf = (delay: number) => `wait_${delay}`;

/** Options: `--seconds=3`. */
export async function measure(options: string[]): Promise<Bench> {
  const seconds = Number(options.find((one) => one.startsWith('--seconds='))?.split('=')[1] ?? 3);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-engine-bench-'));
  const engines: Engine[] = [];
  try {
    const repository = path.join(folder, 'embedded');
    await writeRepository(repository, Object.fromEntries(DELAYS.map((delay) => [nameOf(delay), modelOf(delay)])));
    engines.push({ name: 'embedded', ...(await startEmbedded(repository)) });
    const triton = await startReal(repository, path.join(folder, 'triton'));
    if (triton) engines.push(triton);
    // Once, so that everybody has the same work.
    const turns = await calibrate(engines[0] as Engine);
    const rows = [];
    for (const callers of CALLERS) {
      for (const delay of DELAYS) {
        for (const engine of engines) rows.push(await measureOne(engine, delay, callers, turns, seconds));
      }
    }
    return report(rows, seconds, engines.length > 1);
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}

function modelOf(delay: number) {
  const { graph } = testModels.slow as { graph: NonNullable<(typeof testModels)[string]['graph']> };
  return {
    graph,
    config: `backend: "onnxruntime" max_batch_size: ${BATCH_MAX}
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
dynamic_batching { max_queue_delay_microseconds: ${delay * 1_000} }`,
  };
}

/** The same networks on Triton's Python backend, or nothing where Triton cannot be installed. */
async function startReal(from: string, repository: string): Promise<Engine | undefined> {
  try {
    const installed = await installTriton({
      folder: process.env.AURICLE_TRITON ?? path.join(ROOT, '.auricle/triton'),
      say: console.log,
    });
    await convertRepository(from, repository);
    return { name: 'Triton', ...(await startTriton({ installed, repository })) };
  } catch (error) {
    if (!(error instanceof InstallProblem)) throw error;
    console.warn(`Triton is left out: ${error.message}`);
    return undefined;
  }
}

async function infer(url: string, model: string, turns: number): Promise<number> {
  const inputs = [{ name: 'X', shape: [1, 1], datatype: 'FP32', data: [turns] }];
  const began = performance.now();
  const answer = await fetch(`${url}/v2/models/${model}/infer`, { method: 'POST', body: JSON.stringify({ inputs }) });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
  return performance.now() - began;
}

async function readStatistics(url: string, model: string) {
  const answer = await fetch(`${url}/v2/models/${model}/stats`);
  const [stats] = statisticsMessage.parse(await answer.json()).model_stats;
  if (!stats) throw new Error(`no statistics of ${model}`);
  const { queue, compute_infer } = stats.inference_stats;
  return [stats.inference_count, stats.execution_count, queue.ns, queue.count, compute_infer.ns].map(Number);
}

/** Turns of the network's loop that take EXECUTION_MS on this machine at this moment. */
async function calibrate({ url }: Engine): Promise<number> {
  const turns = 2_000;
  const times: number[] = [];
  for (let n = 0; n < 9; n += 1) times.push(await infer(url, nameOf(0), turns));
  return Math.max(1, Math.round((turns * EXECUTION_MS) / Math.min(...times)));
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

interface Row {
  readonly engine: string;
  readonly callers: number;
  readonly 'wait ms': number;
  readonly 'requests/s': number;
  readonly 'mean batch': number;
  readonly 'queue ms': number;
  readonly 'execution ms': number;
  readonly 'p50 ms': number;
}

async function measureOne(
  engine: Engine,
  delay: number,
  callers: number,
  turns: number,
  seconds: number,
): Promise<Row> {
  const model = nameOf(delay);
  const times: number[] = [];
  const before = await readStatistics(engine.url, model);
  const began = performance.now();
  const caller = async () => {
    while (performance.now() - began < seconds * 1_000) times.push(await infer(engine.url, model, turns));
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const wall = (performance.now() - began) / 1_000;
  const after = await readStatistics(engine.url, model);
  const [inferences = 0, executions = 1, queued = 0, waits = 1, computed = 0] = after.map(
    (value, at) => value - (before[at] ?? 0),
  );
  const round = (value: number) => Number(value.toPrecision(3));
  return {
    engine: engine.name,
    callers,
    'wait ms': delay,
    'requests/s': round(times.length / wall),
    'mean batch': round(inferences / executions),
    'queue ms': round(queued / waits / 1e6),
    // Statistics count an execution's time once for every inference in it.
    'execution ms': round(computed / inferences / 1e6),
    'p50 ms': round(median(times)),
  };
}

function report(rows: readonly Row[], seconds: number, both: boolean): Bench {
  const of = (engine: string, callers: number, delay: number) =>
    rows.find((row) => row.engine === engine && row.callers === callers && row['wait ms'] === delay);
  const perSecond = (engine: string, callers: number, delay: number) => of(engine, callers, delay)?.['requests/s'] ?? 0;
  const many = Math.max(...CALLERS);
  return {
    table: rows.map((row) => ({ ...row })),
    figures: {
      embedded_requests_per_second: perSecond('embedded', many, 0),
      embedded_mean_batch: of('embedded', many, 0)?.['mean batch'] ?? 0,
      ...(both && {
        triton_requests_per_second: perSecond('Triton', many, 0),
        triton_mean_batch: of('Triton', many, 0)?.['mean batch'] ?? 0,
        ratio_vs_triton: Number((perSecond('embedded', many, 0) / perSecond('Triton', many, 0)).toFixed(2)),
      }),
    },
    how: `One network on both engines (Triton: Python backend with ONNX Runtime): a loop calibrated to ${EXECUTION_MS} ms for each execution, whatever its batch, at most ${BATCH_MAX} in one, one instance. Closed loop, ${seconds} s a row, engines in turn; callers, engine and network share the machine's cores. Batch, queue and execution time are the engine's own statistics.`,
  };
}
