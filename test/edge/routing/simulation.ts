import { finished, type RouteMemory, started } from '../../../edge/routing/memory.ts';
import type { RosterEntry, Snapshot } from '../../../shared/pool/heartbeat.ts';
import { randomOf } from '../../fake/random.ts';
import { agent, now as epoch, snapshot } from './fleet.ts';

/** Chooses an agent's index from what one isolate knows at `now`. */
export type Policy = (snapshot: Snapshot, memory: RouteMemory, now: number, random: () => number) => number;

export interface Plan {
  readonly seed: number;
  /** Isolates that route independently, each with its own memory. */
  readonly isolates: number;
  /** Interval of reports to every isolate; a report is `delayMs` old on arrival. */
  readonly reportMs: number;
  readonly delayMs: number;
  readonly slots: readonly number[];
  /** Arriving work, as a share of the capacity of all slots. */
  readonly load: number;
  readonly meanServiceMs: number;
  readonly seconds: number;
  /** Seconds in which the first agent works with half its slots without reporting it. */
  readonly brownOut: readonly [number, number];
}

interface Agent {
  readonly slots: number;
  busy: number;
  readonly queue: Job[];
}
interface Job {
  readonly arrived: number;
  readonly isolate: number;
  readonly agent: number;
  readonly serviceMs: number;
}

/** A discrete-event simulation of first-come-first-served agents. Mean milliseconds a request waited for a slot. */
export function simulate(plan: Plan, policy: Policy): { readonly steady: number; readonly brownOut: number } {
  const random = randomOf(plan.seed);
  const agents: Agent[] = plan.slots.map((slots) => ({ slots, busy: 0, queue: [] }));
  const memories: RouteMemory[] = Array.from({ length: plan.isolates }, () => new Map());
  const [from, to] = plan.brownOut.map((second) => second * 1000) as [number, number];
  const rate = (plan.load * plan.slots.reduce((sum, slots) => sum + slots, 0)) / plan.meanServiceMs;
  const waits = { steady: [] as number[], brownOut: [] as number[] };
  const events: [at: number, run: (at: number) => void][] = [];
  const schedule = (at: number, run: (at: number) => void) => insert(events, [at, run]);
  const exponential = (mean: number) => -Math.log(1 - random()) * mean;
  let known = report(0);

  function report(at: number): Snapshot {
    const entries: RosterEntry[] = agents.map(({ slots, busy, queue }, index) => {
      const queued = { realtime: 0, interactive: 0, default: queue.length, batch: 0 };
      return agent(`agent-${index}`, { slots }, { busy, queued, serviceMs: plan.meanServiceMs }, epoch + at);
    });
    return snapshot(entries, 'eu', epoch + at);
  }
  function start(at: number, index: number): void {
    const one = agents[index] as Agent;
    const usable = index === 0 && at >= from && at < to ? one.slots / 2 : one.slots;
    while (one.busy < usable && one.queue.length > 0) {
      const job = one.queue.shift() as Job;
      one.busy++;
      const bucket = job.arrived >= from && job.arrived < to + 30_000 ? waits.brownOut : waits.steady;
      bucket.push(at - job.arrived);
      schedule(at + job.serviceMs, (ended) => {
        one.busy--;
        const memory = memories[job.isolate] as RouteMemory;
        memories[job.isolate] = finished(memory, `agent-${index}`, {
          outcome: 'healthy',
          ms: ended - job.arrived,
          now: epoch + ended,
        });
        start(ended, index);
      });
    }
  }
  function arrive(at: number): void {
    const isolate = Math.floor(random() * plan.isolates);
    const memory = memories[isolate] as RouteMemory;
    const index = policy(known, memory, epoch + at, random);
    memories[isolate] = started(memory, `agent-${index}`);
    agents[index]?.queue.push({ arrived: at, isolate, agent: index, serviceMs: exponential(plan.meanServiceMs) });
    start(at, index);
    if (at < plan.seconds * 1000) schedule(at + exponential(1 / rate), arrive);
  }
  function tick(at: number): void {
    const made = report(at);
    schedule(at + plan.delayMs, () => {
      known = made;
    });
    if (at < plan.seconds * 1000) schedule(at + plan.reportMs, tick);
  }

  schedule(0, tick);
  schedule(0, arrive);
  // The end of a brown-out is an event of its own, since no arrival may follow.
  schedule(to, (at) => start(at, 0));
  for (let next = events.shift(); next; next = events.shift()) next[1](next[0]);
  return { steady: mean(waits.steady), brownOut: mean(waits.brownOut) };
}

/** Events are few at any time, and mostly near the end of the list. */
function insert<T>(events: [number, T][], event: [number, T]): void {
  let at = events.length;
  while (at > 0 && (events[at - 1]?.[0] ?? 0) > event[0]) at--;
  events.splice(at, 0, event);
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
