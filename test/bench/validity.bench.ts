// The simulation of `npm run simulate` against real processes: the waits that it predicts for the requests of three
// scenarios, and those measured. `npm run bench -- validity [--only NAME] [--rounds 2] [--systems 3]`.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { stopAll } from './front/processes.ts';
import { ratioFigures } from './median.ts';
import type { Bench } from './run.ts';
import { type Comparison, compare, type Round, type Summary } from './validity/compare.ts';
import { predict } from './validity/predict.ts';
import { startSystem } from './validity/replay.ts';
import { agents, drawArrivals, MEAN_MS, type Scenario, scenarios } from './validity/scenarios.ts';

/** Simulations of each round, with other choices of the edge. */
const SIMULATIONS = 20;

type System = Awaited<ReturnType<typeof startSystem>>;

interface Measured extends Round {
  readonly scenario: Scenario;
}

interface Order {
  readonly scenarios: readonly Scenario[];
  readonly systems: number;
  readonly firstSeed: number;
}

/** Starts systems, which know nothing of earlier rounds, and replays the scenarios on all of them at once. */
async function measureRound({ scenarios: chosen, systems: count, firstSeed }: Order): Promise<Measured[]> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-validity-'));
  const systems: System[] = [];
  try {
    for (let at = 0; at < count; at += 1) {
      const own = path.join(folder, String(at));
      mkdirSync(own);
      systems.push(await startSystem(own));
    }
    const measured: Measured[] = [];
    for (const scenario of chosen) measured.push(...(await measureScenario(systems, scenario, firstSeed)));
    return measured;
  } finally {
    await stopAll();
    await Promise.all(systems.map((system) => system.stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Replays a scenario on all systems, with a seed each. The simulations run later: they occupy this process. */
async function measureScenario(systems: readonly System[], scenario: Scenario, firstSeed: number): Promise<Measured[]> {
  const replayed = await Promise.all(
    systems.map(async (system, at) => {
      const arrivals = drawArrivals(scenario, firstSeed + at);
      return { arrivals, ...(await system.replay(scenario, arrivals)) };
    }),
  );
  return replayed.map(({ arrivals, waits: measured, pathMs, callMs }, at) => {
    const seeds = Array.from({ length: SIMULATIONS }, (_, simulation) => (firstSeed + at) * 1_000 + simulation);
    const predicted = seeds.map((seed) => predict(scenario, arrivals, seed, callMs));
    const round = { scenario, arrivals, measured, predicted };
    const [all] = compare([round]) as [Comparison];
    const shown = [all.measured.meanMs, all.predicted.meanMs, pathMs, callMs].map((ms) => ms.toFixed(1));
    console.error(`${scenario.name}: measured, predicted, path and call in ms: ${shown.join(', ')}`);
    return round;
  });
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;

function rowOf(scenario: Scenario, { class: name, requests, predicted, measured }: Comparison) {
  const of = (label: string, member: keyof Omit<Summary, 'refused'>) => ({
    [`${label} predicted ms`]: Math.round(predicted[member]),
    [`${label} measured ms`]: Math.round(measured[member]),
    [`${label} deviation`]: percent(measured[member] / predicted[member] - 1),
  });
  return {
    ...{ scenario: scenario.name, class: name, requests },
    ...of('mean', 'meanMs'),
    ...of('p90', 'p90Ms'),
    'refused predicted': percent(predicted.refused),
    'refused measured': percent(measured.refused),
  };
}

export async function measure(options: string[]): Promise<Bench> {
  const option = (otherwise: number) => ({ type: 'string', default: String(otherwise) }) as const;
  const { values } = parseArgs({
    args: options,
    options: { only: { type: 'string' }, rounds: option(2), systems: option(3) },
  });
  const [rounds, count] = [Number(values.rounds), Number(values.systems)];
  const chosen = scenarios.filter(({ name }) => values.only === undefined || values.only === name);
  const measured: Measured[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const order = { scenarios: chosen, systems: count, firstSeed: round * count + 1 };
    measured.push(...(await measureRound(order)));
  }
  return report(chosen, measured);
}

function report(chosen: readonly Scenario[], measured: readonly Measured[]): Bench {
  const table: Bench['table'][number][] = [];
  const figures: Record<string, number> = {};
  const deviations: number[] = [];
  for (const scenario of chosen) {
    const own = measured.filter((one) => one.scenario === scenario);
    const rows = compare(own);
    table.push(...rows.map((row) => rowOf(scenario, row)));
    for (const { class: name, measured: real, predicted } of rows) {
      figures[`${scenario.key}_${name}_predicted_ms`] = predicted.meanMs;
      figures[`${scenario.key}_${name}_measured_ms`] = real.meanMs;
      deviations.push(Math.abs(real.meanMs / predicted.meanMs - 1));
    }
    const ratios = own.map((round) => {
      const [all] = compare([round]) as [Comparison];
      return all.measured.meanMs / all.predicted.meanMs;
    });
    Object.assign(figures, ratioFigures(`${scenario.key}_ratio`, ratios));
  }
  figures.largest_deviation = Math.max(...deviations);
  const rounded = Object.entries(figures).map(([name, value]) => [name, Number(value.toPrecision(3))]);
  return { table, figures: Object.fromEntries(rounded), how: describe(measured.length / chosen.length) };
}

const describe = (rounds: number): string =>
  `Agents of ${agents.map(({ slots }) => slots).join(', ')} slots behind an edge on workerd, engine doubles that sleep (log-normal, ${MEAN_MS} ms, coefficient of variation 0.5), sockets between all of them; KServe requests at the times of a seed. The simulation (test/simulate) gets the same requests, ${SIMULATIONS} times with other random choices of the edge, and from idle probes the time that a call of the engine adds to its slot. Wait: from sending a request until an engine begins, less the mean of idle probes. ${rounds} rounds of each scenario, a seed each, pooled; ratios are measured over predicted mean waits of a round, their median, lowest and highest. The processes need precedence over other work of the machine: its delays are waits.`;
