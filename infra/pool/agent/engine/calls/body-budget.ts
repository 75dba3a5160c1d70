import { limits } from '../../../../../shared/limits.ts';

/** Memory that the bodies of callers take at one agent, all together. */
export class BodyBudget {
  readonly #bound: number;
  #used = 0;

  constructor(bound: number = limits.callBytesInFlight.value) {
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
