// Agents refused lately, by pool, for operators: a refused agent is in no other list.
import { RECONNECT_MAX_MS, ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';

export interface RefusedAgent {
  readonly pool: string;
  readonly zone: string;
  /** Public text of the refusal. */
  readonly why: string;
  /** Milliseconds since the refusal. */
  readonly refusedMs: number;
}

/** A refused agent reconnects within `RECONNECT_MAX_MS`; after three such pauses it has given up. In ms. */
const LISTED_MS = 3 * RECONNECT_MAX_MS;

export class RefusedAgents {
  readonly #last = new Map<string, Omit<RefusedAgent, 'refusedMs'> & { readonly at: number }>();

  add(refused: Omit<RefusedAgent, 'refusedMs'>, now: number): void {
    this.#last.delete(refused.pool);
    this.#last.set(refused.pool, { ...refused, at: now });
    for (const pool of this.#last.keys()) {
      if (this.#last.size <= ROSTER_AGENTS_MAX) break;
      this.#last.delete(pool);
    }
  }

  forget(pool: string): void {
    this.#last.delete(pool);
  }

  list(now: number): RefusedAgent[] {
    const recent = [...this.#last.values()].filter(({ at }) => now - at <= LISTED_MS);
    return recent.map(({ at, ...rest }) => ({ ...rest, refusedMs: now - at }));
  }
}
