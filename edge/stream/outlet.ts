import { limits } from '../../shared/limits.ts';
import type { Connection } from './connection.ts';
import type { Ending, SessionEvent } from './dialect.ts';

type Segment = Extract<SessionEvent, { type: 'segment' }>;
type Ready = Extract<SessionEvent, { type: 'ready' }>;

/** The way to the client: its connection, or what waits until it has one. */
export class Outlet {
  #connection: Connection | undefined;
  #held: SessionEvent[] = [];
  /** The last segments, for a client that lacks some of them. */
  readonly #segments: Segment[] = [];
  #ready: Ready | undefined;
  /** When the client went away, ms since 1970. */
  droppedAt = 0;

  get connection(): Connection | undefined {
    return this.#connection;
  }

  get ready(): Ready | undefined {
    return this.#ready;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  /** The client is away: events are stored until it is back. */
  detach(now: number): void {
    this.droppedAt = now;
    this.#connection = undefined;
  }

  /** The agent's `ready`, sent once on each connection. */
  tellReady(ready: Ready): void {
    this.#ready = ready;
    this.#connection?.say(ready);
  }

  /** False when there is more for a client that is away than is held for it. */
  tell(event: SessionEvent): boolean {
    if (event.type === 'segment') {
      this.#segments.push(event);
      if (this.#segments.length > limits.streamKeptSegments.value) this.#segments.shift();
    }
    if (!this.#connection) return this.#hold(event);
    this.#connection.say(event);
    return true;
  }

  #hold(event: SessionEvent): boolean {
    // An interim replaces the one before it.
    const stale = event.type === 'interim' || event.type === 'segment';
    if (stale) this.#held = this.#held.filter(({ type }) => type !== 'interim');
    this.#held.push(event);
    return this.#held.length <= limits.streamHeldEvents.value;
  }

  /** Can it tell a client everything from segment `next` on, when `told` is the next one that comes. */
  canRetell(next: number, told: number): boolean {
    const [first] = this.#segments;
    return next >= told || (first !== undefined && first.index <= next);
  }

  /** To a client that came back: what it lacks by its own word, or what came while it was away. */
  retell(next: number | undefined): void {
    const held = this.#held;
    this.#held = [];
    if (this.#ready) this.#connection?.say(this.#ready);
    const segments = next === undefined ? [] : this.#segments.filter(({ index }) => index >= next);
    for (const event of segments) this.#connection?.say(event);
    for (const event of held) if (next === undefined || event.type !== 'segment') this.#connection?.say(event);
  }

  end(ending: Ending, heard?: () => void): void {
    this.#connection?.end(ending, heard);
    this.#connection = undefined;
  }
}
