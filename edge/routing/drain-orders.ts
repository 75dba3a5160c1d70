// Orders of operators to drain the agents of a pool: whether one is safe, and which agents have one.
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';
import { healthOf, takesWork } from './agent-health.ts';
import type { Agent } from './agent-link.ts';

/** Returns the models that no other pool of the zone serves at `now`: callers lose them when the pool drains. */
export function modelsOnlyAt(pool: string, entries: readonly RosterEntry[], now: number): string[] {
  const serving = entries.filter((entry) => takesWork(healthOf(entry, now)));
  const namesOf = (agents: readonly RosterEntry[]) =>
    agents
      .flatMap(({ description }) => description.models)
      .filter(({ stage }) => stage === 'full' || stage === 'canary')
      .map(({ name }) => name);
  const elsewhere = new Set(namesOf(serving.filter(({ description }) => description.pool !== pool)));
  const own = new Set(namesOf(serving.filter(({ description }) => description.pool === pool)));
  return [...own].filter((name) => !elsewhere.has(name)).sort();
}

/** Ordered processes, by agent: a restarted agent has another boot and serves again. Bounded; in memory. */
export class DrainOrders {
  readonly #boots = new Map<string, string>();

  /** Stores the order and returns the agent as draining: no request is sent to it from now on. */
  add(agent: Agent): Agent {
    const { agent: name } = agent.description;
    this.#boots.delete(name);
    this.#boots.set(name, agent.boot);
    const [first] = this.#boots.keys();
    if (first !== undefined && this.#boots.size > ROSTER_AGENTS_MAX) this.#boots.delete(first);
    return draining(agent);
  }

  /** Reports whether the last report does not confirm the agent's order: the message may be lost. */
  isUnconfirmed({ description, boot, load }: Agent): boolean {
    return load?.draining === false && this.#boots.get(description.agent) === boot;
  }
}

/** Returns the agent with a load that takes no new work. */
export const draining = (agent: Agent): Agent =>
  agent.load ? { ...agent, load: { ...agent.load, draining: true } } : agent;
