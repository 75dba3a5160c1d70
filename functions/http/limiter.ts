// A limiter of concurrent work, over all tenants and for each. Work beyond a bound is refused at once.
import type { HttpResponseInit } from '@azure/functions';
import { refuse } from '../../shared/refusal.ts';
import { answerNo } from './answer.ts';

export class TenantLimiter {
  readonly #all: number;
  readonly #each: number;
  readonly #running = new Map<string, number>();
  #count = 0;

  constructor(all: number, each: number) {
    this.#all = all;
    this.#each = each;
  }

  /** Takes a slot. Returns its release, or the bound that is reached. */
  acquire(tenant: string): (() => void) | number {
    const own = this.#running.get(tenant) ?? 0;
    if (own >= this.#each || this.#count >= this.#all) return own >= this.#each ? this.#each : this.#all;
    this.#running.set(tenant, own + 1);
    this.#count += 1;
    return () => {
      this.#count -= 1;
      const left = (this.#running.get(tenant) ?? 1) - 1;
      if (left > 0) this.#running.set(tenant, left);
      else this.#running.delete(tenant);
    };
  }

  async run(tenant: string, work: () => Promise<HttpResponseInit>): Promise<HttpResponseInit> {
    const release = this.acquire(tenant);
    if (typeof release === 'number') return answerNo(refuse('allowance_concurrent', { limit: release }));
    try {
      return await work();
    } finally {
      release();
    }
  }
}
