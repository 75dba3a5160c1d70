import { limits } from '../../shared/limits.ts';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import type { LastMessage } from './agent-link.ts';

interface Remembered extends LastMessage {
  /** End of its attestation, ms since 1970: after it, an earlier hello is refused by age alone. */
  readonly until: number;
}

/**
 * Last boot and number of every agent; it outlives sockets, so that a new socket accepts no replay. Bounded.
 */
export class LastMessages {
  readonly #heard = new Map<string, Remembered>();
  readonly #bound: number;

  constructor(bound: number = limits.rosterHeard.value) {
    this.#bound = bound;
  }

  get(agent: string): LastMessage | undefined {
    return this.#heard.get(agent);
  }

  get size(): number {
    return this.#heard.size;
  }

  /** Stores an agent. At the bound, agents with an ended attestation are evicted, then the oldest entry. */
  set(agent: string, heard: Remembered, now: number): void {
    if (!this.#heard.has(agent) && this.#heard.size >= this.#bound) {
      for (const [name, { until }] of this.#heard) if (until <= now) this.#heard.delete(name);
      const [first] = this.#heard.keys();
      if (first !== undefined && this.#heard.size >= this.#bound) this.#heard.delete(first);
    }
    this.#heard.set(agent, heard);
  }
}

/**
 * Agents that left lately. They stay listed, as gone: a model whose last agent just died is unavailable, not
 * unknown.
 */
export class ClosedAgents {
  readonly #gone = new Map<string, { readonly entry: RosterEntry; readonly until: number }>();

  /**
   * Adds a departed agent with its last report: without its attestation, and silent for too long to be a
   * candidate.
   */
  add(entry: RosterEntry, now: number): void {
    const { agent } = entry.description;
    const heard = Math.min(entry.heard, now - limits.heartbeatGoneMs.value - 1);
    this.#gone.delete(agent);
    this.#gone.set(agent, { entry: { ...entry, heard, attestation: '' }, until: now + limits.rosterGoneMs.value });
    const [first] = this.#gone.keys();
    if (first !== undefined && this.#gone.size > limits.rosterAgents.value) this.#gone.delete(first);
  }

  delete(agent: string): void {
    this.#gone.delete(agent);
  }

  /** Returns the newest `most` that left in the last `limits.rosterGoneMs`. */
  list(now: number, most: number): RosterEntry[] {
    for (const [agent, { until }] of this.#gone) if (until <= now) this.#gone.delete(agent);
    return most > 0 ? [...this.#gone.values()].slice(-most).map(({ entry }) => entry) : [];
  }
}
