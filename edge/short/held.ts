import { limits } from '../../shared/limits.ts';
import { decideAdmission } from '../../shared/pool/admission.ts';
import type { RequestClass } from '../../shared/tenant/claims.ts';

/** The caller whose body is buffered. */
export interface Holder {
  readonly class: RequestClass;
  readonly tenant: string;
}

/** Buffered bytes of one body. */
export interface Hold extends Holder {
  bytes: number;
  /** When it last grew, ms since 1970. */
  since: number;
  /** Whether `release` gives all bytes back at once. */
  readonly releasable: () => boolean;
  /** Gives the bytes to a more entitled body. */
  readonly release: () => void;
}

/**
 * Buffered bytes of all bodies of an isolate, shared by class and tenant (`decideAdmission`). A runtime may drop a request
 * in the middle and run nothing of it any more, so that its bytes are never given back: when there is no room, what has
 * not grown for `limits.heldMs` is counted no longer.
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

  /** Counts in any case. False when it is more than there should be, and no less entitled body gives way. */
  add(hold: Hold, bytes: number, now: number): boolean {
    if (this.#total + bytes > this.#bound) {
      this.#forgetOld(now);
      if (this.#total + bytes > this.#bound) this.#makeRoom(hold, bytes, now);
    }
    this.#holds.add(hold);
    hold.bytes += bytes;
    hold.since = now;
    this.#total += bytes;
    return this.#total <= this.#bound;
  }

  remove(hold: Hold, bytes: number): void {
    if (!this.#holds.has(hold)) return;
    const less = Math.min(bytes, hold.bytes);
    hold.bytes -= less;
    this.#total -= less;
    if (hold.bytes === 0) this.#holds.delete(hold);
  }

  #makeRoom(hold: Hold, size: number, now: number): void {
    const holdings = [...this.#holds].map((one) => ({
      hold: one,
      class: one.class,
      tenant: one.tenant,
      size: one.bytes,
      waiting: one !== hold && one.releasable(),
      deadline: Number.POSITIVE_INFINITY,
    }));
    const capacity = { total: this.#bound, share: this.#bound * limits.classShare.value, lends: true };
    const admission = decideAdmission(holdings, { class: hold.class, tenant: hold.tenant, size }, capacity, now);
    if (admission.admitted) for (const victim of admission.displaced) victim.hold.release();
  }

  #forgetOld(now: number): void {
    for (const hold of this.#holds) if (now - hold.since > limits.heldMs.value) this.remove(hold, hold.bytes);
  }
}

/** Those of this isolate. */
export const heldInFlight = new HeldBytes();
