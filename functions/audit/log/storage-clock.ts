// The clock of storage: each answer has a date, which shows a wrong local clock without another request.

export class StorageClock {
  /** The last date, ms since 1970, and its arrival on a monotonic clock. */
  #heard: { readonly date: number; readonly at: number } | undefined;

  /** `date`: what an answer that came just now bears. */
  hear(date: Date | undefined): void {
    const ms = date?.getTime() ?? Number.NaN;
    if (Number.isFinite(ms)) this.#heard = { date: ms, at: performance.now() };
  }

  /** Ms since 1970, a second less at most; `undefined` before the first answer. */
  now(): number | undefined {
    return this.#heard && this.#heard.date + performance.now() - this.#heard.at;
  }
}
