// A limiter of concurrent work, over all tenants and for each. Work beyond a bound is refused at once.
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

  /** Takes a slot. Returns its release, or the bound that is reached. */
  acquire(tenant: string): (() => void) | number {
    const own = this.#each.enter(tenant);
    if (!own) return this.#bounds.each;
    const slot = this.#all.enter('');
    if (!slot) {
      own.leave();
      return this.#bounds.all;
    }
    return () => {
      slot.leave();
      own.leave();
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
