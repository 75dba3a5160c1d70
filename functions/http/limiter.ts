// A limiter of concurrent HTTP requests, over all tenants and for each. A request beyond a bound is refused at once.
import type { HttpResponseInit } from '@azure/functions';
import { Limiter } from '../../shared/limiter.ts';
import { refuse } from '../../shared/refusal.ts';
import { answerNo } from './answer.ts';

export class TenantLimiter {
  readonly #bounds: { readonly all: number; readonly each: number };
  readonly #all: Limiter;
  readonly #each: Limiter;

  constructor(all: number, each: number) {
    this.#bounds = { all, each };
    this.#all = new Limiter(all);
    this.#each = new Limiter(each);
  }

  async run(tenant: string, work: () => Promise<HttpResponseInit>): Promise<HttpResponseInit> {
    const own = this.#each.enter(tenant);
    const slot = own && this.#all.enter('');
    try {
      if (slot) return await work();
      return answerNo(refuse('allowance_concurrent', { limit: own ? this.#bounds.all : this.#bounds.each }));
    } finally {
      slot?.leave();
      own?.leave();
    }
  }
}
