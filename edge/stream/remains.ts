import { limits } from '../../shared/limits.ts';
import type { Resumable } from './resume-token.ts';

/** What a session that ended leaves to whoever goes on with it from a token. */
export interface Remains {
  /** Where its last token goes on. */
  readonly position: number;
  /** Seconds after that which are in the record and may be heard again; below 0, what was heard and is not in it. */
  credit: number;
  /** Its client has heard that everything was said. */
  over: boolean;
}

/** How a session stood at its end; all in seconds since its beginning, but for `position`. */
export interface Stand {
  readonly position: number;
  /** Where it began here, and what was in the record already. */
  readonly from: number;
  readonly booked: number;
  readonly settled: number;
  /** What was heard; absent when nobody heard, and nothing was booked. */
  readonly taken: number | undefined;
}

/**
 * Who goes on from the last token hears what was not settled a second time, and pays for it once: of what is credited
 * only as much is credited again as was paid for here, or was not used.
 */
export function remainsOf({ position, from, booked, settled, taken }: Stand): Remains {
  if (taken === undefined) return { position, credit: booked - from, over: false };
  const credit = taken < booked ? booked - taken : taken - Math.max(settled, booked);
  return { position, credit: Math.max(0, credit), over: false };
}

/** The sessions of one object that ended lately, by when they began. */
export class Ended {
  readonly #sessions = new Map<number, Remains>();
  readonly #noted = new WeakSet<Remains>();

  /** The first call for each counts. */
  note(began: number, remains: Remains): void {
    if (this.#noted.has(remains)) return;
    this.#noted.add(remains);
    this.#sessions.delete(began);
    this.#sessions.set(began, remains);
    const [oldest] = this.#sessions.keys();
    if (oldest !== undefined && this.#sessions.size > limits.streamSessions.value) this.#sessions.delete(oldest);
  }

  isOver(began: number): boolean {
    return this.#sessions.get(began)?.over ?? false;
  }

  /**
   * Seconds of a session that are in the record, for who goes on with it from this token; a credit is given once, and only
   * to the last token. Of a session that nobody here knows they are not, when its edge was lost under it; a token that is
   * older than a session waits is of one that ended.
   */
  bookedOf({ began, sealed = 0, checkpoint }: Resumable, now: number): number {
    const { time, position } = checkpoint ?? { time: 0, position: 0 };
    const remains = this.#sessions.get(began);
    if (!remains) return now - sealed < limits.streamResumeMs.value ? 0 : time;
    if (remains.position !== position && remains.credit > 0) return time;
    const { credit } = remains;
    remains.credit = 0;
    return Math.max(0, time + credit);
  }
}
