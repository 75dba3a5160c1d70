// Orders of operators to drain the agents of a pool: whether one is safe, and which agents have one.
import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';
import { type Part, partOf } from '../../shared/registry/release.ts';
import { healthOf, takesWork } from './agent-health.ts';
import type { Agent } from './agent-link.ts';

/** Parts that serve stable sessions. */
const STABLE_PARTS: readonly Part[] = ['full', 'older'];

/**
 * Returns the models that callers lose when the pool drains: no other pool of the zone serves them to the
 * same sessions. A canary serves no stable session; a stable revision serves all.
 */
export function modelsOnlyAt(pool: string, { entries, at, release }: Snapshot): string[] {
  const serving = entries.filter((entry) => takesWork(healthOf(entry, at)));
  const namesOf = (agents: readonly RosterEntry[], parts: readonly Part[]) =>
    agents
      .flatMap(({ description }) => description.models)
      .filter((model) => parts.some((part) => part === partOf(release?.models[model.name], model)))
      .map(({ name }) => name);
  const own = serving.filter(({ description }) => description.pool === pool);
  const others = serving.filter(({ description }) => description.pool !== pool);
  const lostOf = (served: readonly Part[], fallback: readonly Part[]) => {
    const elsewhere = new Set(namesOf(others, fallback));
    return namesOf(own, served).filter((name) => !elsewhere.has(name));
  };
  const lost = [...lostOf(STABLE_PARTS, STABLE_PARTS), ...lostOf(['canary'], ['canary', ...STABLE_PARTS])];
  return [...new Set(lost)].sort();
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
