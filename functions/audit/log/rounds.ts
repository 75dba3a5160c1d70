// Runs work for each log repeatedly: with growing pauses while it finds nothing, and at once after a relevant
// write of this process. The longest pause bounds the delay of other processes' writes.

/**
 * Shortest pause of an idle round: under the second of the shortest timer, so that an early tick skips
 * nothing.
 */
const ROUND_PAUSE_MS = 500;

/**
 * Reports whether `now` is less than `ms` after `since`. A `since` in the future, after the clock went back,
 * is not.
 */
export const isWithin = (now: number, since: number, ms: number): boolean => now >= since && now - since < ms;

/** Decides the time of the next run. */
export class Pace {
  readonly #longestMs: number;
  #pauseMs = 0;
  #since = 0;
  /** Changes that the last look knew of; none before the first one. */
  #known: number | undefined;

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** `now`: ms since 1970. `changes`: how many there have been. */
  due(now: number, changes: number): boolean {
    return changes !== this.#known || !isWithin(now, this.#since, this.#pauseMs);
  }

  /** `now` and `changes` as they were before the look, so that what happened meanwhile is looked at. */
  looked(now: number, changes: number, found: boolean): void {
    this.#pauseMs = found ? 0 : Math.min(this.#longestMs, Math.max(ROUND_PAUSE_MS, 2 * this.#pauseMs));
    this.#since = now;
    this.#known = changes;
  }
}

export interface Rounds {
  readonly zones: readonly string[];
  readonly longestMs: number;
  now(): number;
  /** Counts writes that the work may find. */
  changes(zone: string): number;
  /** Returns whether there was work. */
  work(zone: string): Promise<boolean>;
  failed(zone: string, error: unknown): void;
}

/** Runs one round over all zones, each at its own pace; a failure in one does not delay the others. */
export function openRounds({ zones, longestMs, now, changes, work, failed }: Rounds): () => Promise<void> {
  const paces = zones.map((zone) => ({ zone, pace: new Pace(longestMs) }));
  return async () => {
    await Promise.all(
      paces.map(async ({ zone, pace }) => {
        const [at, known] = [now(), changes(zone)];
        if (!pace.due(at, known)) return;
        const found = await work(zone).catch((error: unknown) => {
          failed(zone, error);
          return false;
        });
        pace.looked(at, known, found);
      }),
    );
  };
}
