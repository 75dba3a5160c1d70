// Scenarios that are simulated and replayed on real processes, and the requests of a seed.
import { classes, type RequestClass } from '../../../shared/tenant/claims.ts';
import { randomOf } from '../../fake/random.ts';

/** Mean service time of a request, ms: long enough that two busy cores do not decide it. */
export const MEAN_MS = 150;

/** The agents, each a pool of its own, with their slots: unequal, so that shares of slots matter. */
export const agents = [
  { name: 'pool-a', slots: 2 },
  { name: 'pool-b', slots: 1 },
  { name: 'pool-c', slots: 1 },
] as const;

type Mix = Readonly<Partial<Record<RequestClass, number>>>;

export interface Scenario {
  readonly name: string;
  /** Prefix of its figures. */
  readonly key: string;
  /** Offered work as a share of all slots, from a second on. */
  readonly load: readonly { readonly fromS: number; readonly share: number }[];
  readonly seconds: number;
  /** Share of requests by class. */
  readonly mix: Mix;
  /** Factor of the service times of the first agent between two seconds. */
  readonly slow?: { readonly fromS: number; readonly untilS: number; readonly factor: number };
}

/** Requests before this second warm compilers, connections and the memory of the edge; they are not counted. */
const WARM_S = 5;
const mixed: Mix = { realtime: 0.25, interactive: 0.35, default: 0.2, batch: 0.2 };

/** The scenarios in their order: overload is last, since the edge remembers the latencies that it leaves. */
export const scenarios: readonly Scenario[] = [
  { name: 'steady load', key: 'steady', load: [{ fromS: 0, share: 0.65 }], seconds: 35, mix: mixed },
  {
    name: 'slow pool',
    key: 'slow',
    load: [{ fromS: 0, share: 0.5 }],
    seconds: 30,
    mix: mixed,
    slow: { fromS: 8, untilS: 20, factor: 3 },
  },
  {
    name: 'twice the load for 8 s',
    key: 'overload',
    load: [
      { fromS: 0, share: 0.5 },
      { fromS: 6, share: 2 },
      { fromS: 14, share: 0.4 },
    ],
    seconds: 22,
    mix: { realtime: 0.25, batch: 0.75 },
  },
];

/** One request of a scenario. */
export interface Arrival {
  /** Milliseconds from the start. */
  readonly atMs: number;
  readonly class: RequestClass;
  readonly tenant: string;
  /** Service time at an agent that is not slow, ms. */
  readonly serviceMs: number;
  readonly counted: boolean;
}

const TENANTS = 3;
/** Service times are log-normal with a coefficient of variation of a half, about that of utterances. */
const SIGMA = Math.sqrt(Math.log(1.25));

function drawClass(mix: Mix, random: number): RequestClass {
  let at = random;
  for (const name of classes) {
    at -= mix[name] ?? 0;
    if (at < 0) return name;
  }
  return 'batch';
}

/** Draws the requests of a scenario: Poisson arrivals and log-normal service times, equal for equal seeds. */
export function drawArrivals({ load, seconds, mix }: Scenario, seed: number): Arrival[] {
  const random = randomOf(seed);
  const slots = agents.reduce((sum, one) => sum + one.slots, 0);
  const arrivals: Arrival[] = [];
  for (let atMs = 0; ; ) {
    const { share } = load.findLast(({ fromS }) => fromS * 1_000 <= atMs) as Scenario['load'][number];
    atMs += (-Math.log(1 - random()) * MEAN_MS) / (share * slots);
    if (atMs >= seconds * 1_000) return arrivals;
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    arrivals.push({
      atMs,
      class: drawClass(mix, random()),
      tenant: `validity-${Math.floor(random() * TENANTS)}`,
      serviceMs: MEAN_MS * Math.exp(SIGMA * normal - SIGMA ** 2 / 2),
      counted: atMs >= WARM_S * 1_000,
    });
  }
}
