import { limits } from '../../shared/limits.ts';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import type { Heard } from './agent-link.ts';

interface Remembered extends Heard {
  /** When its attestation ends, ms since 1970: a hello of before is refused after that by its age alone. */
  readonly until: number;
}

/** Last boot and number of every agent; outlives sockets, so that nothing can be replayed on a new one. Bounded. */
export class HeardAgents {
  readonly #heard = new Map<string, Remembered>();
  readonly #bound: number;

  constructor(bound: number = limits.rosterHeard.value) {
    this.#bound = bound;
  }

  get(agent: string): Heard | undefined {
    return this.#heard.get(agent);
  }

  get size(): number {
    return this.#heard.size;
  }

  /** At the bound those whose attestation has ended go, and then the one that was first heard first. */
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
 * Agents that went a while ago. They stay listed, as gone: a model whose last agent just died is not served at the
 * moment, which is something else than a model that does not exist.
 */
export class GoneAgents {
  readonly #gone = new Map<string, { readonly entry: RosterEntry; readonly until: number }>();

  /** `entry` as it was last heard. It is listed without its attestation, as silent since before it was a candidate. */
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

  /** The newest `most` of those that went in the last `limits.rosterGoneMs`. */
  list(now: number, most: number): RosterEntry[] {
    for (const [agent, { until }] of this.#gone) if (until <= now) this.#gone.delete(agent);
    return most > 0 ? [...this.#gone.values()].slice(-most).map(({ entry }) => entry) : [];
  }
}
