import { limits } from '../../shared/limits.ts';
import type { Connection } from './connection.ts';
import type { Ending, SessionEvent } from './dialect.ts';

type Segment = Extract<SessionEvent, { type: 'segment' }>;
type Ready = Extract<SessionEvent, { type: 'ready' }>;

/** The way to the client: its connection, or what waits until it has one. */
export class Outlet {
  #connection: Connection | undefined;
  #held: SessionEvent[] = [];
  /** Told while the client was already silent, and when: it may have been gone. */
  #doubtful: { readonly event: SessionEvent; readonly at: number }[] = [];
  /** The last segments, for a client that lacks some of them. */
  readonly #segments: Segment[] = [];
  #ready: Ready | undefined;
  /** When the client went away, and when it was heard before that, ms since 1970. */
  droppedAt = 0;
  #silentSince = 0;

  get connection(): Connection | undefined {
    return this.#connection;
  }

  get ready(): Ready | undefined {
    return this.#ready;
  }

  /** When a client that is here, or was here last, was last heard, ms since 1970. */
  get heardAt(): number {
    return this.#connection?.heardAt ?? this.#silentSince;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  /** The client is away; what it was told after it fell silent it has not heard, and is told when it is back. */
  detach(now: number): void {
    this.#silentSince = this.heardAt;
    this.droppedAt = now;
    this.#connection = undefined;
    const unheard = this.#doubtful.filter(({ at }) => at > this.#silentSince + limits.streamDoubtMs.value);
    this.#doubtful = [];
    for (const { event } of unheard) this.#hold(event);
  }

  /** Which agent hears, said once on each connection. */
  tellReady(ready: Ready): void {
    this.#ready = ready;
    this.#connection?.say(ready);
  }

  /** False when there is more for a client that is away than is held for it. */
  tell(event: SessionEvent, now: number): boolean {
    if (event.type === 'segment') {
      this.#segments.push(event);
      if (this.#segments.length > limits.streamKeptSegments.value) this.#segments.shift();
    }
    if (!this.#connection) return this.#hold(event);
    this.#doubt(event, now, this.#connection.heardAt);
    this.#connection.say(event);
    return true;
  }

  #doubt(event: SessionEvent, at: number, heardAt: number): void {
    const [first] = this.#doubtful;
    if (first && first.at <= heardAt) this.#doubtful = [];
    if (event.type === 'interim' || at <= heardAt + limits.streamDoubtMs.value) return;
    this.#doubtful.push({ event, at });
    if (this.#doubtful.length > limits.streamHeldEvents.value) this.#doubtful.shift();
  }

  #hold(event: SessionEvent): boolean {
    // Of an utterance that goes on only the last look is worth anything.
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
