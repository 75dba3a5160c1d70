// Routing under load, simulated: the production choice, queue and admission beside simple policies, an oracle, and itself
// with one ingredient less. Options: `--seeds=3 --only=NAME --no-streams`.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { drawChart } from '../simulate/chart.ts';
import { type Estimate, estimate, type Figures } from '../simulate/measure.ts';
import { ablations, ours, rivals } from '../simulate/policies.ts';
import { scenarios } from '../simulate/scenarios.ts';
import { type Order, runAll } from '../simulate/threads.ts';
import type { Bench } from './run.ts';

const CHARTS = path.join(import.meta.dirname, 'results', 'simulate');
/** Streams of the measurement of speed, in two runs. */
const STREAMS = 1_000_000;
/** Scenarios in which each ingredient is switched off. */
const ABLATED: ReadonlySet<string> = new Set(['slow pool', 'twice the load on six']);
/** Rivals on sixty pools, where a run takes long; on six pools all of them. */
const LARGE_RIVALS: Readonly<Record<string, readonly string[]>> = {
  'sixty pools': ['oracle'],
  'lost region': ['oracle'],
  'day and night': ['oracle'],
  'twice the load': ['oracle'],
  streams: ['two choices'],
};

/** Runs of one scenario with one policy, a seed each. */
interface Cell {
  readonly scenario: string;
  readonly policy: string;
  readonly runs: readonly { readonly figures: Figures; readonly timeline: readonly (number | undefined)[] }[];
}

async function runCells(names: readonly string[], seeds: number): Promise<Cell[]> {
  const keys = names.flatMap((scenario) => {
    const others = rivals.filter(({ name }) => LARGE_RIVALS[scenario]?.includes(name) ?? true);
    const compared = [ours, ...others, ...(ABLATED.has(scenario) ? ablations : [])];
    return compared.map(({ name: policy }) => ({ scenario, policy }));
  });
  const orders: Order[] = keys.flatMap((key) => Array.from({ length: seeds }, (_, at) => ({ ...key, seed: at + 1 })));
  const results = await runAll(orders, (done) => {
    if (done % 50 === 0) console.error(`${done} of ${orders.length} runs`);
  });
  return keys.map((key, at) => ({ ...key, runs: results.slice(at * seeds, (at + 1) * seeds) }));
}

const rounded = (value: number): string => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3));
const shown = ({ mean, plusMinus }: Estimate): string => `${rounded(mean)} ± ${rounded(plusMinus)}`;

function rowOf({ scenario, policy, runs }: Cell) {
  const of = (name: keyof Figures) => shown(estimate(runs.map(({ figures }) => figures[name])));
  return {
    scenario,
    policy,
    'answer ms': of('answerMs'),
    'realtime in 300 ms': of('realtimeInDeadline'),
    goodput: of('goodput'),
    failed: of('failed'),
    'residency breaches': runs.reduce((sum, { figures }) => sum + figures.breaches, 0),
  };
}

function writeCharts(cells: readonly Cell[]): void {
  mkdirSync(CHARTS, { recursive: true });
  const names = new Set([ours, ...rivals].map(({ name }) => name));
  for (const [scenario, all] of Map.groupBy(cells, (cell) => cell.scenario)) {
    const lines = all
      .filter(({ policy }) => names.has(policy))
      .map(({ policy, runs }) => ({
        name: policy,
        values: (runs[0]?.timeline ?? []).map((_, second) => {
          const some = runs.flatMap(({ timeline }) => timeline[second] ?? []);
          return some.length > 0 ? estimate(some).mean : undefined;
        }),
      }));
    writeFileSync(path.join(CHARTS, `${scenario.replaceAll(/\W+/g, '-')}.svg`), drawChart(scenario, lines));
  }
}

/** Opens a million streams on sixty pools, half with each of two seeds; returns how long the processors take. */
async function timeStreams(): Promise<Record<string, number>> {
  const began = process.cpuUsage();
  // 1,613 streams are opened a second; the last 20 seconds and the first 60 are not counted.
  const seconds = Math.ceil(STREAMS / 2 / 1_612.8) + 80;
  const runs = await runAll(
    [1, 2].map((seed) => ({ scenario: 'streams', policy: ours.name, seed, change: { seconds } })),
  );
  const streams = runs.reduce((sum, { figures }) => sum + figures.requests, 0);
  // Time on the wall depends on what else the machine does.
  const { user, system } = process.cpuUsage(began);
  return { million_streams_cpu_s: ((user + system) * STREAMS) / streams / 1e6 };
}

export async function measure(options: string[]): Promise<Bench> {
  const option = (name: string) => options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1];
  const seeds = Number(option('seeds') ?? 3);
  const only = option('only')?.split(',');
  const names = scenarios.map(({ name }) => name).filter((name) => only?.includes(name) ?? true);
  const cells = await runCells(names, seeds);
  if (options.length === 0) writeCharts(cells);
  const estimateOf = (scenario: string, policy: string, name: keyof Figures): Estimate => {
    const cell = cells.find((one) => one.scenario === scenario && one.policy === policy);
    return cell ? estimate(cell.runs.map(({ figures }) => figures[name])) : { mean: Number.NaN, plusMinus: Number.NaN };
  };
  const mean = (...of: Parameters<typeof estimateOf>): number => estimateOf(...of).mean;
  const ratio = (scenario: string) => mean(scenario, ours.name, 'answerMs') / mean(scenario, 'oracle', 'answerMs');
  const [urgent, useful] = (['realtimeInDeadline', 'goodput'] as const).map((name) =>
    estimateOf('twice the load', ours.name, name),
  ) as [Estimate, Estimate];
  const figures = {
    realtime_in_deadline: urgent.mean,
    realtime_in_deadline_plus_minus: urgent.plusMinus,
    realtime_in_deadline_six: mean('twice the load on six', ours.name, 'realtimeInDeadline'),
    goodput: useful.mean,
    goodput_plus_minus: useful.plusMinus,
    goodput_six: mean('twice the load on six', ours.name, 'goodput'),
    streams_refused: mean('streams', ours.name, 'failed'),
    streams_refused_two_choices: mean('streams', 'two choices', 'failed'),
    wait_vs_oracle: ratio('sixty pools'),
    wait_vs_oracle_six: ratio('six pools'),
    residency_breaches: cells.reduce(
      (sum, { runs }) => sum + runs.reduce((all, one) => all + one.figures.breaches, 0),
      0,
    ),
    canary_share: mean('canary', ours.name, 'canary'),
    ...(options.includes('--no-streams') ? {} : await timeStreams()),
  };
  const measured = Object.entries(figures).filter(([, value]) => !Number.isNaN(value));
  const others = new Set(rivals.map(({ name }) => name));
  return {
    table: cells.filter(({ policy }) => !others.has(policy)).map(rowOf),
    printed: cells.map(rowOf),
    figures: Object.fromEntries(measured.map(([name, value]) => [name, Number(value.toPrecision(4))])),
    how: describe(seeds),
  };
}

const describe = (seeds: number): string =>
  `A discrete-event simulation (test/simulate/README.md) that calls the edge's pick, shed, memory, retry budget and ejection and the agent's admission, queue, draw and patience; ${seeds} seeds, means with 95 % confidence intervals over them. Sixty isolates with memories of their own; six or sixty pools of 4 to 16 slots; reports each second; log-normal service times. Work in time: it waits at most 0.3, 5, 30 and 120 s for the engine in the classes realtime, interactive, default and batch. wait_vs_oracle: mean time from request to answer at 80 % load, over an oracle that knows every queue at once. million_streams_cpu_s: seconds of CPU, all threads together, that a million simulated live streams take.`;
