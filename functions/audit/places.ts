// How much of one kind of work goes on at once in this process: the logs are written by the same process, and what one
// tenant asks for must not keep others, or the logs, waiting. Who finds no place is refused at once and may come again.
import type { HttpResponseInit } from '@azure/functions';
import { refuse } from '../../shared/refusal.ts';
import { answerNo } from '../answer.ts';

export class Places {
  readonly #all: number;
  readonly #each: number;
  readonly #taken = new Map<string, number>();
  #count = 0;

  constructor(all: number, each: number) {
    this.#all = all;
    this.#each = each;
  }

  /** The answer, or that there is no place for this tenant now. */
  async hold(tenant: string, work: () => Promise<HttpResponseInit>): Promise<HttpResponseInit> {
    const own = this.#taken.get(tenant) ?? 0;
    if (own >= this.#each || this.#count >= this.#all)
      return answerNo(refuse('allowance_concurrent', { limit: own >= this.#each ? this.#each : this.#all }));
    this.#taken.set(tenant, own + 1);
    this.#count += 1;
    try {
      return await work();
    } finally {
      this.#count -= 1;
      const left = (this.#taken.get(tenant) ?? 1) - 1;
      if (left > 0) this.#taken.set(tenant, left);
      else this.#taken.delete(tenant);
    }
  }
}
