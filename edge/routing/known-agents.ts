import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { HEARTBEAT_GONE_MS, ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';
import type { LastMessage } from './agent-link.ts';

/** Time a departed agent is listed as gone: its models are missing meanwhile, not unknown. */
export const ROSTER_GONE_MS = 600_000;
/** Agents whose last number is stored against replays, about 3 MiB; at most as long as their attestation. */
const ROSTER_SEQUENCES_MAX = 16_384;

interface Remembered extends LastMessage {
  /** End of its attestation, ms since 1970: after it, an earlier hello is refused by age alone. */
  readonly until: number;
}

/**
 * Last boot and number of every agent; it outlives sockets, so that a new socket accepts no replay. Bounded.
 */
export class LastMessages {
  readonly #messages = new Map<string, Remembered>();
  readonly #bound: number;

  constructor(bound: number = ROSTER_SEQUENCES_MAX) {
    this.#bound = bound;
  }

  get(agent: string): LastMessage | undefined {
    return this.#messages.get(agent);
  }

  get size(): number {
    return this.#messages.size;
  }

  /** Stores an agent. At the bound, agents with an ended attestation are evicted, then the oldest entry. */
  set(agent: string, message: Remembered, now: number): void {
    if (!this.#messages.has(agent) && this.#messages.size >= this.#bound) {
      for (const [name, { until }] of this.#messages) if (until <= now) this.#messages.delete(name);
      const [first] = this.#messages.keys();
      if (first !== undefined && this.#messages.size >= this.#bound) this.#messages.delete(first);
    }
    this.#messages.set(agent, message);
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
    const heard = Math.min(entry.heard, now - HEARTBEAT_GONE_MS - 1);
    this.#gone.delete(agent);
    this.#gone.set(agent, { entry: { ...entry, heard, attestation: '' }, until: now + ROSTER_GONE_MS });
    const [first] = this.#gone.keys();
    if (first !== undefined && this.#gone.size > ROSTER_AGENTS_MAX) this.#gone.delete(first);
  }

  delete(agent: string): void {
    this.#gone.delete(agent);
  }

  /** Returns the newest `most` that left in the last `ROSTER_GONE_MS`. */
  list(now: number, most: number): RosterEntry[] {
    for (const [agent, { until }] of this.#gone) if (until <= now) this.#gone.delete(agent);
    return most > 0 ? [...this.#gone.values()].slice(-most).map(({ entry }) => entry) : [];
  }
}
