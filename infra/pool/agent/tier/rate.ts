/** Requests of a model as a count that halves every `halfLifeMs`; a value, replaced by each request. */
export interface Rate {
  /** Decayed count of requests at `at`. */
  readonly count: number;
  /** Epoch ms. */
  readonly at: number;
  readonly halfLifeMs: number;
}

export const startRate = (halfLifeMs: number, now: number): Rate => ({ count: 0, at: now, halfLifeMs });

/** Returns the decayed count at `now`. A clock that stepped back counts as no time passed. */
export const countAt = ({ count, at, halfLifeMs }: Rate, now: number): number =>
  count * 2 ** (-Math.max(0, now - at) / halfLifeMs);

export const addRequest = (rate: Rate, now: number): Rate => ({ ...rate, count: countAt(rate, now) + 1, at: now });

/** Returns requests per second: a steady rate r holds the count at r × half-life ÷ ln 2. */
export const perSecond = (rate: Rate, now: number): number => (countAt(rate, now) * Math.LN2 * 1_000) / rate.halfLifeMs;
