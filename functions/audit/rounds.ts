// What is done for each log again and again: less and less often while it comes to nothing, and at once when this process
// has written what may concern it. Other processes write, too; hence the longest pause, and not none.
import { limits } from '../../shared/limits.ts';

/** Whether it is less than `ms` since `since`. It is not when that is to come: somebody has set the clock back. */
export const isWithin = (now: number, since: number, ms: number): boolean => now >= since && now - since < ms;

/** When to look next. */
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
    this.#pauseMs = found ? 0 : Math.min(this.#longestMs, Math.max(limits.auditLookMs.value, 2 * this.#pauseMs));
    this.#since = now;
    this.#known = changes;
  }
}

export interface Rounds {
  readonly zones: readonly string[];
  readonly longestMs: number;
  now(): number;
  /** How often something was written that the work may find. */
  changes(zone: string): number;
  /** Whether there was anything to do. */
  work(zone: string): Promise<boolean>;
  failed(zone: string, error: unknown): void;
}

/** One round through all zones, at the pace of each. One region's trouble keeps no other waiting. */
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
