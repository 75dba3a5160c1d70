import { limits } from '../../shared/limits.ts';
import { decideAdmission } from '../../shared/pool/admission.ts';
import type { RequestClass } from '../../shared/tenant/claims.ts';

/** The caller whose body is buffered. */
export interface BodyOwner {
  readonly class: RequestClass;
  readonly tenant: string;
}

/** Buffered bytes of one body. */
export interface BufferedBody extends BodyOwner {
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
  readonly #bodies = new Set<BufferedBody>();
  #total = 0;

  constructor(bound: number = limits.heldBytesInFlight.value) {
    this.#bound = bound;
  }

  get total(): number {
    return this.#total;
  }

  /** Counts in any case. False when it is more than there should be, and no less entitled body gives way. */
  add(body: BufferedBody, bytes: number, now: number): boolean {
    if (this.#total + bytes > this.#bound) {
      this.#forgetOld(now);
      if (this.#total + bytes > this.#bound) this.#makeRoom(body, bytes, now);
    }
    this.#bodies.add(body);
    body.bytes += bytes;
    body.since = now;
    this.#total += bytes;
    return this.#total <= this.#bound;
  }

  remove(body: BufferedBody, bytes: number): void {
    if (!this.#bodies.has(body)) return;
    const less = Math.min(bytes, body.bytes);
    body.bytes -= less;
    this.#total -= less;
    if (body.bytes === 0) this.#bodies.delete(body);
  }

  #makeRoom(body: BufferedBody, size: number, now: number): void {
    const holdings = [...this.#bodies].map((one) => ({
      body: one,
      class: one.class,
      tenant: one.tenant,
      size: one.bytes,
      waiting: one !== body && one.releasable(),
      deadline: Number.POSITIVE_INFINITY,
    }));
    const capacity = { total: this.#bound, reserved: this.#bound * limits.classShare.value, lends: true };
    const admission = decideAdmission(holdings, { class: body.class, tenant: body.tenant, size }, capacity, now);
    if (admission.admitted) for (const victim of admission.displaced) victim.body.release();
  }

  #forgetOld(now: number): void {
    for (const body of this.#bodies) if (now - body.since > limits.heldMs.value) this.remove(body, body.bytes);
  }
}

/** Those of this isolate. */
export const heldInFlight = new HeldBytes();
