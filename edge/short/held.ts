import { limits } from '../../shared/limits.ts';

/** What one body holds, as far as it is counted. */
export interface Hold {
  bytes: number;
  /** When it last grew, ms since 1970. */
  since: number;
}

/**
 * Bytes of bodies that an isolate holds, all requests together. A runtime may drop a request in the middle and run
 * nothing of it any more, so that nobody takes its bytes off: when there is no room, what has not grown for
 * `limits.heldMs` is counted no longer.
 */
export class HeldBytes {
  readonly #bound: number;
  readonly #holds = new Set<Hold>();
  #total = 0;

  constructor(bound: number = limits.heldBytesInFlight.value) {
    this.#bound = bound;
  }

  get total(): number {
    return this.#total;
  }

  /** Counts in any case. False when it is more than there should be. */
  add(hold: Hold, bytes: number, now: number): boolean {
    this.#holds.add(hold);
    hold.bytes += bytes;
    hold.since = now;
    this.#total += bytes;
    if (this.#total > this.#bound) this.#forgetOld(now);
    return this.#total <= this.#bound;
  }

  remove(hold: Hold, bytes: number): void {
    if (!this.#holds.has(hold)) return;
    const less = Math.min(bytes, hold.bytes);
    hold.bytes -= less;
    this.#total -= less;
    if (hold.bytes === 0) this.#holds.delete(hold);
  }

  #forgetOld(now: number): void {
    for (const hold of this.#holds) if (now - hold.since > limits.heldMs.value) this.remove(hold, hold.bytes);
  }
}

/** Those of this isolate. */
export const heldInFlight = new HeldBytes();
