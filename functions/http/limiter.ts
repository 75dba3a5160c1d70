// A limiter of concurrent HTTP requests, over all tenants and for each. A request beyond a bound is refused at once.
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

  async run(tenant: string, work: () => Promise<HttpResponseInit>): Promise<HttpResponseInit> {
    const own = this.#running.get(tenant) ?? 0;
    if (own >= this.#each || this.#count >= this.#all)
      return answerNo(refuse('allowance_concurrent', { limit: own >= this.#each ? this.#each : this.#all }));
    this.#running.set(tenant, own + 1);
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      const left = (this.#running.get(tenant) ?? 1) - 1;
      if (left > 0) this.#running.set(tenant, left);
      else this.#running.delete(tenant);
    }
  }
}
