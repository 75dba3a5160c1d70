// The requests of a scenario on the simulated edge and agents.
import type { AgentDescription } from '../../../shared/pool/description.ts';
import { randomOf } from '../../fake/random.ts';
import { SimulatedAgent } from '../../simulate/agent.ts';
import { createSimulation } from '../../simulate/events.ts';
import { type Done, Isolate } from '../../simulate/isolate.ts';
import { ours } from '../../simulate/policies.ts';
import { createReader, startRosters } from '../../simulate/roster.ts';
import { type Arrival, agents, MEAN_MS, type Scenario } from './scenarios.ts';

export const MODEL = 'sleeper';
/** Zone of all agents and tenants. */
export const ZONE = 'eu';

/** Milliseconds that each request waited for an engine; absent for a refused one. */
export type Waits = readonly (number | undefined)[];

const EPOCH = Date.UTC(2026, 0, 1);
/** Time from an agent to the roster, ms: both are on one machine. */
const LATE_MS = 5;
/** Reports come before the first request. */
const START_MS = 1_000;
const TICKET_MS = 3_600_000;
/** All requests have ended so long after the last one has come. */
const DRAIN_MS = 120_000;
/** One place for all: no distance. */
const location = { latitude: 50, longitude: 10 };

const describeAgent = (name: string, slots: number): AgentDescription => ({
  ...{ agent: name, pool: name, zone: ZONE, region: 'bench', platform: 'other', endpoint: `http://${name}.example` },
  ...{ accelerator: 'cpu', location, slots, suites: [5] },
  models: [
    {
      ...{ name: MODEL, task: 'infer', languages: ['zxx'], revision: `sha256:${'0'.repeat(64)}` },
      ...{ precision: 'fp32', stage: 'full', loaded: 1 },
    },
  ],
});

/**
 * Runs the requests of a scenario on a simulated clock. `seed` is that of the edge's choices; `callMs` is the time that a
 * request holds its slot beyond the engine's own.
 */
export function predict(scenario: Scenario, arrivals: readonly Arrival[], seed: number, callMs: number): Waits {
  const simulation = createSimulation(EPOCH);
  const { now, after } = simulation;
  const fleet = agents.map(
    ({ name, slots }) => new SimulatedAgent({ description: describeAgent(name, slots), meanMs: MEAN_MS }, simulation),
  );
  const rosters = startRosters(fleet, simulation, { lateMs: LATE_MS, canary: false, change: (entry) => entry });
  const isolate = new Isolate({
    ...{ simulation, policy: ours, random: randomOf(seed), location, read: createReader(rosters, now) },
    agents: new Map(fleet.map((agent) => [agent.plan.description.agent, agent])),
    onAttempt() {},
  });
  const waits: (number | undefined)[] = arrivals.map(() => undefined);
  const route = ({ class: name, tenant, serviceMs }: Arrival, index: number) => {
    const began = now();
    const done = (result: Done) => {
      if (result.served) waits[index] = Math.max(0, now() - began - result.servedMs - result.networkMs);
    };
    isolate.route({
      ...{ class: name, tenant, deadline: began + TICKET_MS, size: (serviceMs + callMs) / MEAN_MS, done },
      route: {
        ...{ tenant, session: String(index), task: 'infer', model: MODEL, zones: [ZONE], suite: 5, class: name },
      },
    });
  };
  for (const [index, arrival] of arrivals.entries()) after(START_MS + arrival.atMs, () => route(arrival, index));
  const { slow } = scenario;
  const [first] = fleet;
  if (slow && first) {
    const setAt = (second: number, factor: number) =>
      after(START_MS + second * 1_000, () => {
        first.slowness = factor;
      });
    setAt(slow.fromS, slow.factor);
    setAt(slow.untilS, 1);
  }
  simulation.runUntil(EPOCH + START_MS + scenario.seconds * 1_000 + DRAIN_MS);
  return waits;
}
