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
import { median, middle, ratioFigures } from './median.ts';
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

/** Options: `--repeats=3 --seconds=3`. */
export async function measure(options: string[]): Promise<Bench> {
  const option = (name: string) => options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1];
  const [repeats, seconds] = [Number(option('repeats') ?? 3), Number(option('seconds') ?? 3)];
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
    const cells = CALLERS.flatMap((callers) =>
      DELAYS.flatMap((delay) => engines.map((engine): Cell => ({ engine, delay, callers, rows: [] }))),
    );
    for (let round = 0; round < repeats; round += 1) {
      for (const cell of cells) cell.rows.push(await measureOne(cell, turns, seconds));
    }
    return report(cells, repeats, seconds);
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

interface Cell {
  readonly engine: Engine;
  readonly delay: number;
  readonly callers: number;
  /** One of each round. */
  readonly rows: Row[];
}

async function measureOne({ engine, delay, callers }: Cell, turns: number, seconds: number): Promise<Row> {
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

function report(cells: readonly Cell[], repeats: number, seconds: number): Bench {
  /** All that a row says is of one round. */
  const shown = ({ rows }: Cell) => middle(rows, (row) => row['requests/s']);
  const many = Math.max(...CALLERS);
  const cellOf = (name: string) =>
    cells.find(({ engine, callers, delay }) => engine.name === name && callers === many && delay === 0);
  const figuresOf = (prefix: string, cell: Cell | undefined) =>
    cell && {
      [`${prefix}_requests_per_second`]: shown(cell)['requests/s'],
      [`${prefix}_mean_batch`]: shown(cell)['mean batch'],
    };
  const [ours, peer] = [cellOf('embedded'), cellOf('Triton')];
  const ratios = (ours?.rows ?? []).flatMap((row, round) => {
    const beside = peer?.rows[round];
    return beside ? [Number((row['requests/s'] / beside['requests/s']).toFixed(2))] : [];
  });
  return {
    table: cells.map((cell) => ({ ...shown(cell) })),
    figures: {
      ...figuresOf('embedded', ours),
      ...figuresOf('triton', peer),
      ...ratioFigures('ratio_vs_triton', ratios),
    },
    how: `One network on both engines (Triton: Python backend with ONNX Runtime): a loop that computes, calibrated to ${EXECUTION_MS} ms for each execution, whatever its batch, at most ${BATCH_MAX} in one, one instance; it is not the latency double for Triton (delay.py), which sleeps. Closed loop, ${repeats} rounds of ${seconds} s a row, engines in turn. The ratio is of requests/s with ${many} callers and no wait, taken in each round: the figure is the median, _low and _high are the lowest and the highest. All that a row says is of one round, the middle one by requests/s. Callers, engine and network share the machine's cores. Batch, queue and execution time are the engine's own statistics.`,
  };
}
