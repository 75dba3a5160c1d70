// One run of a scenario: clients, isolates, rosters and agents on one simulated clock.
import type { Place } from '../../edge/place.ts';
import type { RouteRequest } from '../../edge/routing/route.ts';
import { classes, type RequestClass } from '../../shared/tenant/claims.ts';
import { randomOf } from '../fake/random.ts';
import { SimulatedAgent } from './agent.ts';
import { createSimulation, type Simulation } from './events.ts';
import { CANARY, cities, type Fleet, type Language, modelOf, type TenantGroup } from './fleet.ts';
import { type Done, Isolate } from './isolate.ts';
import { Collector, type Figures } from './measure.ts';
import type { Policy } from './policies.ts';
import { createReader, startRosters } from './roster.ts';

export interface Scenario {
  readonly name: string;
  readonly fleet: Fleet;
  /** Offered work as a share of the capacity of all slots. */
  readonly load: number;
  /** Length of the run, and of its beginning that is not counted. */
  readonly seconds: number;
  readonly warmSeconds: number;
  readonly isolates: number;
  /** Delay of heartbeats on their way. */
  readonly lateMs: number;
  readonly canary?: true;
  /** Live streams of this mean length instead of requests. */
  readonly streamSeconds?: number;
  /** Factor of the traffic of a language at a part of the run, 0 to 1. */
  readonly tide?: (language: Language, part: number) => number;
  /** Changes agents at times: called once, before the run. */
  readonly faults?: (agents: readonly SimulatedAgent[], simulation: Simulation) => void;
}

const EPOCH = Date.UTC(2026, 0, 1);
/** Share of requests by class, most urgent first. */
const MIX: Readonly<Record<RequestClass, number>> = { realtime: 0.25, interactive: 0.35, default: 0.2, batch: 0.2 };
/** Deadline of the edge's tickets, ms. */
const TICKET_MS = 3_600_000;
const TENANTS = 5;
/** End of a run in which requests begin that are not counted: counted ones have their answers by then. */
const DRAIN_MS = 20_000;
/** Share of a tenant's requests that enter near its zones. */
const NEAR = 0.9;
/** Log-normal sizes of requests with mean 1 and coefficient of variation 1. */
const SIGMA = Math.sqrt(Math.log(2));

function drawKey<T>(items: readonly T[], weight: (item: T) => number, random: number): T {
  let at = random;
  for (const item of items) {
    at -= weight(item);
    if (at < 0) return item;
  }
  return items.at(-1) as T;
}

/** Draws requests; equal seeds give equal requests, whatever the policy does. */
function createTraffic({ fleet, isolates, streamSeconds }: Scenario, seed: number) {
  const random = randomOf(seed);
  const exponential = () => -Math.log(1 - random());
  const near = new Map<string, number[]>();
  const zones = [...new Set(fleet.groups.flatMap((group) => group.zones))];
  const locations: Place[] = [];
  for (let at = 0; at < isolates; at += 1) {
    const zone = zones[at % zones.length] as string;
    const inZone = cities[zone] as readonly Place[];
    locations.push(inZone[Math.floor(at / zones.length) % inZone.length] as Place);
    near.set(zone, [...(near.get(zone) ?? []), at]);
  }
  const pickFrom = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  return {
    locations,
    exponential,
    next() {
      const group = drawKey<TenantGroup>(fleet.groups, ({ share }) => share, random());
      const name = drawKey<RequestClass>(classes, (one) => MIX[one], random());
      const language = pickFrom(group.languages);
      const home = pickFrom(group.zones);
      const at = random() < NEAR ? pickFrom(near.get(home) ?? [0]) : Math.floor(random() * isolates);
      const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      const size = Math.exp(SIGMA * normal - SIGMA ** 2 / 2);
      const tenant = `${group.zones.join('-')}-${Math.floor(random() * TENANTS)}`;
      const [session, keeps] = [String(Math.floor(random() * 1e9)), random()];
      const staysMs = streamSeconds === undefined ? undefined : exponential() * streamSeconds * 1_000;
      return { group, class: name, language, isolate: at, size, tenant, session, keeps, staysMs };
    },
  };
}

/** Work of mean size 1 that the fleet does each ms. */
const capacityOf = ({ fleet, streamSeconds }: Scenario): number =>
  fleet.pools.reduce((sum, { description, meanMs }) => {
    if (streamSeconds === undefined) return sum + description.slots / meanMs;
    return sum + (description.streams ?? 0) / (streamSeconds * 1_000);
  }, 0);

export interface Run {
  readonly figures: Figures;
  readonly events: number;
  /** Mean milliseconds to the answer of requests that began in each second of the run; absent where there were none. */
  readonly timeline: readonly (number | undefined)[];
}

/** Starts the isolates of the edge; `sent` counts attempts by agent, and the collector those outside a tenant's zones. */
function startIsolates(
  { scenario, policy, seed, simulation, agents }: World,
  locations: readonly Place[],
  collector: Collector,
  sent: Map<SimulatedAgent, number>,
): Isolate[] {
  const byName = new Map(agents.map((agent) => [agent.plan.description.agent, agent]));
  const { lateMs, canary = false } = scenario;
  const rosters = startRosters(agents, simulation, { lateMs, canary, change: policy.change ?? ((entry) => entry) });
  const random = randomOf(seed + 1_000_003);
  const onAttempt = ({ zones }: RouteRequest, agent: SimulatedAgent) => {
    sent.set(agent, (sent.get(agent) ?? 0) + 1);
    if (!zones.includes(agent.plan.description.zone)) collector.breaches += 1;
  };
  return locations.map((location) => {
    const read = createReader(rosters, simulation.now);
    return new Isolate({ simulation, agents: byName, policy, random, location, read, onAttempt });
  });
}

interface World {
  readonly scenario: Scenario;
  readonly policy: Policy;
  readonly seed: number;
  readonly simulation: Simulation;
  readonly agents: readonly SimulatedAgent[];
}

/** Answer times of the requests of each second of a run. */
function createTimeline(seconds: number) {
  const sums = Array.from({ length: seconds }, () => ({ sum: 0, count: 0 }));
  return {
    add(second: number, ms: number): void {
      const one = sums[second];
      if (!one) return;
      one.sum += ms;
      one.count += 1;
    },
    means: () => sums.map(({ sum, count }) => (count > 0 ? sum / count : undefined)),
  };
}

/** Runs a scenario with a policy. Equal seeds give equal figures. */
export function run(scenario: Scenario, policy: Policy, seed: number): Run {
  const simulation = createSimulation(EPOCH);
  const { now, after } = simulation;
  const agents = scenario.fleet.pools.map((plan) => new SimulatedAgent(plan, simulation));
  const traffic = createTraffic(scenario, seed);
  const { locations } = traffic;
  const collector = new Collector();
  const sent = new Map<SimulatedAgent, number>();
  const isolates = startIsolates({ scenario, policy, seed, simulation, agents }, locations, collector, sent);
  const timeline = createTimeline(scenario.seconds);
  const end = EPOCH + scenario.seconds * 1_000;
  const [counted, last] = [EPOCH + scenario.warmSeconds * 1_000, end - DRAIN_MS];
  const rate = scenario.load * capacityOf(scenario);

  const arrive = () => {
    after(traffic.exponential() / rate, arrive);
    const { group, class: drawn, language, isolate, size, tenant, session, keeps, staysMs } = traffic.next();
    const began = now();
    if (scenario.tide && keeps >= scenario.tide(language, (began - EPOCH) / (end - EPOCH))) return;
    const live = staysMs !== undefined;
    const name = live ? 'realtime' : drawn;
    const counts = began >= counted && began < last;
    if (counts) collector.offer(name, size);
    const done = (result: Done) => {
      if (counts && !result.served) collector.failed += 1;
      if (!result.served) return;
      const answerMs = now() - began;
      timeline.add(Math.floor((began - EPOCH) / 1_000), answerMs);
      const waitMs = Math.max(0, answerMs - result.servedMs - result.networkMs);
      const trialed = result.revision === CANARY;
      if (counts) collector.served({ class: name, answerMs, waitMs, size, trialed });
    };
    (isolates[isolate] as Isolate).route({
      ...{ class: policy.classless ? 'default' : name, tenant, deadline: began + TICKET_MS, size, done },
      ...(live && { staysMs }),
      route: {
        ...{ tenant, session, task: 'transcribe', model: modelOf(language), zones: group.zones, suite: 5, class: name },
        ...{ place: locations[isolate], live, realtime: live },
      },
    });
  };

  // The first heartbeats come before the first requests.
  after(scenario.lateMs + 1, arrive);
  scenario.faults?.(agents, simulation);
  simulation.runUntil(end);
  const shares = agents.map((agent) => (sent.get(agent) ?? 0) / agent.plan.description.slots);
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  const possible = capacityOf(scenario) * (last - counted);
  return {
    figures: collector.figures(possible, Math.max(...shares) / mean),
    events: simulation.count(),
    timeline: timeline.means(),
  };
}
