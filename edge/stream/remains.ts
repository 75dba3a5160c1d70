import { limits } from '../../shared/limits.ts';
import type { Resumable } from './resume-token.ts';

/** State of an ended session for one that resumes from its token. */
export interface Remains {
  /** Position of its last token. */
  readonly position: number;
  /** Seconds after that which are in the record and may be heard again; below 0, what was heard and is not in it. */
  credit: number;
  /** Its client has heard that everything was said. */
  over: boolean;
}

/** How a session stood at its end; all in seconds since its beginning, but for `position`. */
export interface Stand {
  readonly position: number;
  /** Time at which it began in this object, and seconds in the record by then. */
  readonly from: number;
  readonly booked: number;
  readonly settled: number;
  /** Seconds that agents heard; absent when no agent heard the stream and none were booked. */
  readonly taken: number | undefined;
}

/**
 * Decides the credit of a session that resumes from the last token. Its agent hears unsettled audio a second time, which
 * is booked once: a credit is passed on as far as it was not used here.
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
   * Returns the seconds of a session that are in the record, for one that resumes from this token. A credit is given
   * once, and only to the last token. A session that this object does not know was lost with its edge, and has none in the
   * record; with a token older than a session waits it ended, and has all.
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
