// What time it is by storage: each of its answers bears a date. Whose own clock is wrong can tell by it, and asks nothing more.

export class StorageClock {
  /** The last date, ms since 1970, and when it came: by a clock that nobody sets. */
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
