import { STREAM_RESUME_MS } from './limits.ts';
import type { Resumable } from './resume-token.ts';

/**
 * Connections to one session of /v1/stream: the one in use, and earlier ones whose close the edge has not
 * seen.
 */
export const SESSION_CONNECTIONS_MAX = 16;

/** State of an ended session for the session that resumes it. */
export interface EndedSession {
  /** Position of its last token. */
  readonly position: number;
  /** Seconds after that position that are booked, and may be processed again; negative for seconds that are not booked. */
  credit: number;
  /** The client has read the normal end. */
  delivered: boolean;
}

/** Seconds of a session at its end, since its beginning. */
export interface SessionUsage {
  /** Position of its last token, in bytes. */
  readonly position: number;
  /** Time at which the session began in this object, and seconds booked by then. */
  readonly from: number;
  readonly booked: number;
  readonly committed: number;
  /** Seconds that agents processed; undefined without an agent. */
  readonly processed: number | undefined;
}

/**
 * Computes the credit of the session that resumes from the last token. Its agent processes uncommitted audio a second
 * time, which is booked once. Credit that was not used is passed on.
 */
export function endSession({ position, from, booked, committed, processed }: SessionUsage): EndedSession {
  if (processed === undefined) return { position, credit: booked - from, delivered: false };
  const credit = processed < booked ? booked - processed : processed - Math.max(committed, booked);
  return { position, credit: Math.max(0, credit), delivered: false };
}

/** The last sessions that ended in one object, by their beginning. */
export class EndedSessions {
  readonly #sessions = new Map<number, EndedSession>();
  readonly #added = new WeakSet<EndedSession>();

  /** Adds a session once. */
  add(began: number, session: EndedSession): void {
    if (this.#added.has(session)) return;
    this.#added.add(session);
    this.#sessions.delete(began);
    this.#sessions.set(began, session);
    const [oldest] = this.#sessions.keys();
    if (oldest !== undefined && this.#sessions.size > SESSION_CONNECTIONS_MAX) this.#sessions.delete(oldest);
  }

  wasDelivered(began: number): boolean {
    return this.#sessions.get(began)?.delivered ?? false;
  }

  /**
   * Returns the booked seconds of a session that resumes from a token, and spends its credit. Only the last token has
   * credit, once. A session that this object does not know was lost with its edge and has nothing booked; with a token
   * older than a session waits it ended, and has everything booked.
   */
  takeBooked({ began, sealed = 0, checkpoint }: Resumable, now: number): number {
    const { time, position } = checkpoint ?? { time: 0, position: 0 };
    const session = this.#sessions.get(began);
    if (!session) return now - sealed < STREAM_RESUME_MS ? 0 : time;
    if (session.position !== position && session.credit > 0) return time;
    const { credit } = session;
    session.credit = 0;
    return Math.max(0, time + credit);
  }
}
