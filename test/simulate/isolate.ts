// An isolate of the edge without sockets: its memory, its retry budget and its attempts are those of the edge.
import type { Place } from '../../edge/place.ts';
import { isRealtime } from '../../edge/routing/cost.ts';
import { type AgentMemory, finishedOne, outcomeOfRefusal, startedOne } from '../../edge/routing/memory.ts';
import { afterFailure, answerTimeLeft, earn, fullBudget, type RetryBudget } from '../../edge/routing/retry.ts';
import type { RouteRequest } from '../../edge/routing/route.ts';
import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { type Reason, refuse } from '../../shared/refusal.ts';
import type { Job, SimulatedAgent } from './agent.ts';
import type { Simulation } from './events.ts';
import { roundTripMs } from './fleet.ts';
import type { Policy, Truth } from './policies.ts';

/** Work that a client sends to an isolate. */
export interface Work extends Omit<Job, 'end'> {
  readonly route: RouteRequest;
  /** Milliseconds that a live stream stays; absent for a request. */
  readonly staysMs?: number;
  readonly done: (result: Done) => void;
}

/** `servedMs`: time in the engine; `networkMs`: round trip to the agent that served. */
export type Done =
  | { readonly served: true; readonly servedMs: number; readonly networkMs: number; readonly revision: string }
  | { readonly served: false; readonly reason: Reason };

export interface IsolateContext {
  readonly simulation: Simulation;
  readonly agents: ReadonlyMap<string, SimulatedAgent>;
  readonly policy: Policy;
  readonly read: () => readonly Snapshot[];
  readonly random: () => number;
  readonly location: Place;
  /** Called with every agent that gets a request. */
  readonly onAttempt: (route: RouteRequest, agent: SimulatedAgent) => void;
}

interface Attempted {
  readonly work: Work;
  readonly plan: readonly { readonly entry: RosterEntry; readonly model: { readonly revision: string } }[];
  readonly made: number;
  /** Time spent on calls that no agent answered, ms. */
  readonly dialledMs: number;
}

export class Isolate {
  readonly #context: IsolateContext;
  readonly #memory = new Map<string, AgentMemory>();
  readonly #distances = new Map<string, number>();
  #budget: RetryBudget = fullBudget;
  #turn: number;

  constructor(context: IsolateContext) {
    this.#context = context;
    this.#turn = Math.floor(context.random() * 1_000);
  }

  route(work: Work): void {
    const { policy, read, random, simulation } = this.#context;
    this.#turn += 1;
    const choice = {
      snapshots: read(),
      memory: this.#memory,
      now: simulation.now(),
      random,
      turn: this.#turn,
      truth: this.#truthFor(work),
    };
    const plan = policy.choose(work.route, choice);
    if (!plan.ok) {
      work.done({ served: false, reason: plan.refusal.reason });
      return;
    }
    this.#budget = earn(this.#budget);
    this.#attempt({ work, plan: plan.value, made: 0, dialledMs: 0 });
  }

  /**
   * Time that the request would take at an agent, by its queue at this moment. Work that it overtakes counts, too: that
   * waits as much longer, up to the time of one service.
   */
  #truthFor({ class: name, route }: Work): Truth {
    return (agent) => {
      const one = this.#context.agents.get(agent) as SimulatedAgent;
      const { slots } = one.plan.description;
      const away = this.#distanceTo(one);
      if (one.state !== 'up') return Number.MAX_SAFE_INTEGER;
      if (route.live) return one.streams / slots + away * 1e-6;
      const ms = one.plan.meanMs * one.slowness;
      const { ahead, behind } = one.backlog(name);
      return away + ms + ((Math.max(0, ahead + 1 - slots) + (behind < slots ? behind : 0)) * ms) / slots;
    };
  }

  #distanceTo({ plan: { description } }: SimulatedAgent): number {
    const known = this.#distances.get(description.region);
    if (known !== undefined) return known;
    const ms = roundTripMs(this.#context.location, description.location as Place);
    this.#distances.set(description.region, ms);
    return ms;
  }

  #attempt({ work, plan, made, dialledMs }: Attempted): void {
    const { agents, simulation, onAttempt } = this.#context;
    const { entry, model } = plan[made] as Attempted['plan'][number];
    const { agent: name } = entry.description;
    const agent = agents.get(name) as SimulatedAgent;
    const networkMs = this.#distanceTo(agent);
    const began = simulation.now();
    onAttempt(work.route, agent);
    this.#memory.set(name, startedOne(this.#memory.get(name)));
    const fail = (reason: Reason, answered: boolean) => {
      const took = simulation.now() - began;
      this.#finish(name, reason, 0);
      const dialled = dialledMs + (answered ? 0 : took);
      this.#failed({ work, plan, made: made + 1, dialledMs: dialled }, reason);
    };
    if (agent.state === 'dark') {
      simulation.after(answerTimeLeft(dialledMs), () => fail('pool_lost', false));
      return;
    }
    if (agent.state === 'down') {
      simulation.after(networkMs, () => fail('pool_lost', false));
      return;
    }
    agent.coming += 1;
    simulation.after(networkMs / 2, () => {
      agent.coming -= 1;
      const serve = (servedMs: number) => work.done({ served: true, servedMs, networkMs, revision: model.revision });
      const back = (result: number | Reason) => {
        simulation.after(networkMs / 2, () => {
          if (typeof result === 'string') {
            fail(result, true);
            return;
          }
          this.#finish(name, undefined, simulation.now() - began);
          serve(result);
        });
      };
      if (work.staysMs === undefined) agent.submit({ ...work, end: back });
      else if (agent.state !== 'up' || agent.streams >= (agent.plan.description.streams ?? 0)) back('pool_busy');
      else {
        simulation.after(networkMs / 2, () => serve(0));
        this.#hold(agent, work.staysMs);
      }
    });
  }

  /** Holds a live stream open. It lasts as long as its speaker talks: no measure of the agent's speed. */
  #hold(agent: SimulatedAgent, staysMs: number): void {
    agent.streams += 1;
    this.#context.simulation.after(staysMs, () => {
      agent.streams -= 1;
      this.#finish(agent.plan.description.agent, undefined, 0);
    });
  }

  #finish(name: string, reason: Reason | undefined, ms: number): void {
    const { policy, simulation } = this.#context;
    const outcome = reason === undefined ? 'healthy' : outcomeOfRefusal(reason);
    const next = finishedOne(this.#memory.get(name), { outcome, ms, now: simulation.now() });
    this.#memory.set(name, policy.remember?.(next) ?? next);
  }

  #failed(attempted: Attempted, reason: Reason): void {
    const { made, plan, work } = attempted;
    const remaining = this.#context.policy.once ? 0 : plan.length - made;
    const realtime = isRealtime(work.route);
    const failure = { refusal: refuse(reason), made, remaining, replayable: true, delivered: false, realtime };
    const next = afterFailure(failure, this.#budget);
    if (!next.again) {
      work.done({ served: false, reason: next.refusal.reason });
      return;
    }
    this.#budget = next.budget;
    this.#attempt(attempted);
  }
}
