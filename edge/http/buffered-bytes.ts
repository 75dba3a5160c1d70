import { MiB } from '../../shared/bytes.ts';
import { decideAdmission } from '../../shared/pool/admission.ts';
import { CLASS_SHARE } from '../../shared/pool/limits.ts';
import type { RequestClass } from '../../shared/tenant/claims.ts';

/** Bodies buffered by one isolate: their buffers are at most twice that, and it has 128 MB. */
export const BUFFERED_BYTES_IN_FLIGHT = 32 * MiB;
/**
 * Time without growth after which a buffered body no longer counts: its request may have vanished with its
 * caller.
 */
export const BUFFERED_MS = 120_000;

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
 * in the middle and run nothing of it any more, so that its bytes are never released: at the bound, what has
 * not grown for `BUFFERED_MS` is counted no longer.
 */
export class BufferedBytes {
  readonly #bound: number;
  readonly #bodies = new Set<BufferedBody>();
  #total = 0;

  constructor(bound: number = BUFFERED_BYTES_IN_FLIGHT) {
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
    const capacity = { total: this.#bound, reserved: this.#bound * CLASS_SHARE, lends: true };
    const admission = decideAdmission(holdings, { class: body.class, tenant: body.tenant, size }, capacity, now);
    if (admission.admitted) for (const victim of admission.displaced) victim.body.release();
  }

  #forgetOld(now: number): void {
    for (const body of this.#bodies) if (now - body.since > BUFFERED_MS) this.remove(body, body.bytes);
  }
}

/** The buffered bytes of this isolate. */
export const bufferedInFlight = new BufferedBytes();
