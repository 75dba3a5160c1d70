/** Bounds of a back-off, milliseconds. */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Returns the pause before the given attempt (0 for the first retry), ms: doubling, with full jitter on its upper half. */
export function backOffMs(attempt: number, { firstMs, maxMs }: BackOff, random: number): number {
  const most = Math.min(firstMs * 2 ** attempt, maxMs);
  return most / 2 + (most / 2) * random;
}
