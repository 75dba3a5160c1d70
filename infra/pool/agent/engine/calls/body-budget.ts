import { MiB } from '../../../../../shared/bytes.ts';

/** Inference requests that one agent buffers, all together: a message can be checked only as a whole. */
const INFER_BYTES_IN_FLIGHT = 256 * MiB;

/** Memory that the bodies of callers take at one agent, all together. */
export class BodyBudget {
  readonly #bound: number;
  #used = 0;

  constructor(bound: number = INFER_BYTES_IN_FLIGHT) {
    this.#bound = bound;
  }

  get used(): number {
    return this.#used;
  }

  /** Whether there was room; what was taken must be given back. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#bound) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }
}
