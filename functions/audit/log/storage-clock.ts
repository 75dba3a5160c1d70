// The clock of storage: each answer has a date, which shows a wrong local clock without another request.

export class StorageClock {
  /** The last date, ms since 1970, and its arrival on a monotonic clock. */
  #last: { readonly date: number; readonly at: number } | undefined;

  /** `date`: what an answer that came just now bears. */
  observe(date: Date | undefined): void {
    const ms = date?.getTime() ?? Number.NaN;
    if (Number.isFinite(ms)) this.#last = { date: ms, at: performance.now() };
  }

  /** Ms since 1970, a second less at most; `undefined` before the first answer. */
  now(): number | undefined {
    return this.#last && this.#last.date + performance.now() - this.#last.at;
  }
}
