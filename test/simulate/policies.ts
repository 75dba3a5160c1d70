// The production choice, what it is compared with, and itself with one ingredient less.
import { candidatesFor } from '../../edge/routing/constraints.ts';
import type { AgentMemory } from '../../edge/routing/memory.ts';
import { type PickContext, pick } from '../../edge/routing/pick.ts';
import type { Attempt, RouteRequest } from '../../edge/routing/route.ts';
import { shed } from '../../edge/routing/shed.ts';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { no, ok, type Result } from '../../shared/result.ts';

/** Milliseconds until an agent would have done a request of this kind, by what is true now. */
export type Truth = (agent: string) => number;

export interface Choice extends PickContext {
  /** True state of the fleet, for the oracle only. */
  readonly truth: Truth;
  /** Number of the request in its isolate. */
  readonly turn: number;
}

type Plan = Pick<Attempt, 'entry' | 'model'>[];

export interface Policy {
  readonly name: string;
  readonly choose: (request: RouteRequest, choice: Choice) => Result<Plan>;
  /** Changes what isolates read of an agent at `at`, epoch ms. */
  readonly change?: (entry: RosterEntry, at: number) => RosterEntry;
  /** Changes what an isolate remembers of an agent. */
  readonly remember?: (memory: AgentMemory) => AgentMemory;
  /** The edge makes one attempt only. */
  readonly once?: true;
  /** Agents serve all classes in the order of arrival. */
  readonly classless?: true;
}

type Candidate = Plan[number];

/** Makes a policy that orders the candidates of the hard constraints; the first two are tried. */
function rival(name: string, order: (rest: readonly Candidate[], choice: Choice) => Candidate[]): Policy {
  return {
    name,
    choose(request, choice) {
      const able = candidatesFor(request, choice.snapshots, choice.now);
      if (!able.ok) return able;
      return ok(
        order(
          able.value.filter(({ part }) => part === 'full'),
          choice,
        ).slice(0, 2),
      );
    },
  };
}

const slotsOf = ({ entry }: Candidate): number => entry.description.slots;

function drawBy<T>(items: readonly T[], weight: (item: T) => number, random: number): T {
  let at = random * items.reduce((sum, item) => sum + weight(item), 0);
  const found = items.find((item) => {
    at -= weight(item);
    return at < 0;
  });
  return (found ?? items.at(-1)) as T;
}

function lowest(items: readonly Candidate[], cost: (item: Candidate) => number): Candidate[] {
  const costs = new Map(items.map((item) => [item, cost(item)]));
  return items.toSorted((a, b) => (costs.get(a) ?? 0) - (costs.get(b) ?? 0));
}

/** Work at an agent for each slot, as last reported. */
const reported = ({ entry: { load, description } }: Candidate): number =>
  Math.max(load.busy, load.streams ?? 0) / description.slots;

function drawTwo(rest: readonly Candidate[], { random }: Choice): Candidate[] {
  const first = drawBy(rest, slotsOf, random());
  const others = rest.filter((one) => one !== first);
  return others.length > 0 ? [first, drawBy(others, slotsOf, random())] : [first];
}

export const ours: Policy = {
  name: 'auricle',
  choose(request, choice) {
    const busy = shed(request, choice.snapshots, choice.now);
    return busy ? no(busy) : pick(request, choice);
  },
};

const oracle = rival('oracle', (rest, { truth }) => lowest(rest, ({ entry }) => truth(entry.description.agent)));

export const rivals: readonly Policy[] = [
  oracle,
  rival('two choices', (rest, choice) => lowest(drawTwo(rest, choice), reported)),
  rival('random', drawTwo),
  rival('round robin', (rest, { turn }) => [0, 1].map((at) => rest[(turn + at) % rest.length] as Candidate)),
  rival('argmin', (rest) => lowest(rest, reported)),
];

const without = (name: string, change: Partial<Policy>): Policy => ({ ...ours, name: `without ${name}`, ...change });
const never = { until: 0, times: 0 };

/** Hides members of a description. */
const hide =
  (...members: readonly (keyof RosterEntry['description'])[]) =>
  (entry: RosterEntry): RosterEntry => ({
    ...entry,
    description: { ...entry.description, ...Object.fromEntries(members.map((name) => [name, undefined])) },
  });

export const ablations: readonly Policy[] = [
  without('reports', { change: (entry) => ({ ...entry, load: { ...entry.load, ...idle } }) }),
  without('age of reports', { change: (entry, at) => ({ ...entry, heard: at }) }),
  without('memory', { remember: ({ ejected, row, window }) => ({ ...forgotten, ejected, row, window }) }),
  without('ejection', { remember: (memory) => ({ ...memory, ejected: never }) }),
  without('retry', { once: true }),
  without('classes', { classless: true }),
  without('distance', { change: hide('location') }),
  without('device and price', { change: hide('device', 'price') }),
  without('shedding', { choose: pick }),
];

const idle = { busy: 0, streams: 0, queued: { realtime: 0, interactive: 0, default: 0, batch: 0 }, serviceMs: 0 };
const forgotten = { outstanding: 0, ewmaMs: undefined, seen: 0 };
