/** Location of a sequence's state: an instance, and a slot of its own there. */
export interface Seat {
  readonly instance: number;
  readonly slot: number;
}

/** One sequence from its START until nothing of it is left, with its waiting requests in order. */
export interface Line<E> {
  readonly key: string;
  /** Absent while the sequence waits for a slot, in Triton's backlog. */
  readonly seat: Seat | undefined;
  readonly waiting: readonly E[];
  /** One of its requests is running. */
  readonly busy: boolean;
  /** Further requests with its id join it. */
  readonly open: boolean;
}

interface Entry<E> extends Line<E> {
  seat: Seat | undefined;
  waiting: E[];
  busy: boolean;
  open: boolean;
  /** Time of its last request or answer, µs. */
  lastAt: number;
  /** Expiry of its requests in the backlog, µs; 0: never. */
  expiresAt: number;
}

/**
 * Assigns sequences to slots, orders their requests and expires idle ones. Triton's rules
 * (sequence_batch_scheduler.cc), except that a sequence is idle only while none of its requests waits or
 * runs, so that a slow machine does not expire waiting clients. Times are handed in, in microseconds.
 */
export class Lines<E> {
  readonly #idleUs: number;
  readonly #free: number[][];
  readonly #all = new Set<Entry<E>>();
  readonly #open = new Map<string, Entry<E>>();
  readonly #backlog = new Set<Entry<E>>();
  #waiting = 0;

  constructor(instances: number, slots: number, idleUs: number) {
    this.#idleUs = idleUs;
    // The lowest slot is taken first.
    this.#free = Array.from({ length: instances }, () => Array.from({ length: slots }, (_, slot) => slots - 1 - slot));
  }

  get size(): number {
    return this.#all.size;
  }

  /** Number of waiting requests. */
  get waiting(): number {
    return this.#waiting;
  }

  all(): Line<E>[] {
    return [...this.#all];
  }

  /** Returns the open sequence of that id. */
  find(key: string): Line<E> | undefined {
    return this.#open.get(key);
  }

  /** Adds a request to its sequence, or to a new one with START; undefined without either. */
  join(key: string, flags: { start: boolean; end: boolean }, entry: E, now: number): Line<E> | undefined {
    const known = this.#open.get(key);
    if (!known && !flags.start) return undefined;
    const line = known ?? this.#begin(key);
    line.waiting.push(entry);
    this.#waiting++;
    line.lastAt = now;
    if (flags.end) this.end(line);
    return line;
  }

  /** Expires the sequence at `at`, µs, or before, unless it takes a slot. */
  expire(line: Line<E>, at: number): void {
    const entry = line as Entry<E>;
    entry.expiresAt = entry.expiresAt === 0 ? at : Math.min(entry.expiresAt, at);
  }

  #begin(key: string): Entry<E> {
    const seat = this.#takeSeat();
    const line: Entry<E> = { key, seat, waiting: [], busy: false, open: true, lastAt: 0, expiresAt: 0 };
    this.#all.add(line);
    this.#open.set(key, line);
    if (!seat) this.#backlog.add(line);
    return line;
  }

  #takeSeat(): Seat | undefined {
    const most = Math.max(...this.#free.map((slots) => slots.length));
    const instance = this.#free.findIndex((slots) => slots.length === most);
    const slot = this.#free[instance]?.pop();
    return slot === undefined ? undefined : { instance, slot };
  }

  /** Takes the sequence's next request; the sequence is then busy until `done`. */
  next(line: Line<E>): E | undefined {
    const entry = line as Entry<E>;
    if (!entry.seat || entry.busy) return undefined;
    const first = entry.waiting.shift();
    if (first === undefined) return undefined;
    this.#waiting--;
    entry.busy = true;
    return first;
  }

  done(line: Line<E>, now: number): void {
    const entry = line as Entry<E>;
    entry.busy = false;
    entry.lastAt = now;
  }

  /** Closes the sequence to further requests; waiting ones still run. */
  end(line: Line<E>): void {
    (line as Entry<E>).open = false;
    if (this.#open.get(line.key) === line) this.#open.delete(line.key);
  }

  /** Removes `count` waiting requests from index `from`. */
  drop(line: Line<E>, from: number, count: number): E[] {
    const dropped = (line as Entry<E>).waiting.splice(from, count);
    this.#waiting -= dropped.length;
    return dropped;
  }

  /**
   * Removes a sequence that has ended and has nothing left. Returns the freed slot, and the sequence of the
   * backlog that takes it.
   */
  settle(line: Line<E>): { freed: Seat | undefined; seated: Line<E> | undefined } {
    const nothing = { freed: undefined, seated: undefined };
    const over = !line.open && !line.busy && line.waiting.length === 0;
    if (!over || !this.#all.delete(line as Entry<E>)) return nothing;
    this.#backlog.delete(line as Entry<E>);
    if (!line.seat) return nothing;
    const [next] = this.#backlog;
    if (next) {
      this.#backlog.delete(next);
      next.seat = line.seat;
      next.expiresAt = 0;
    } else this.#free[line.seat.instance]?.push(line.seat.slot);
    return { freed: line.seat, seated: next };
  }

  #idleAt(line: Entry<E>): number {
    return line.busy || line.waiting.length > 0 ? Number.POSITIVE_INFINITY : line.lastAt + this.#idleUs;
  }

  /** Reports whether an open sequence is past its idle timeout. */
  isIdle(line: Line<E>, now: number): boolean {
    return this.#idleAt(line as Entry<E>) <= now;
  }

  idle(now: number): Line<E>[] {
    return [...this.#open.values()].filter((line) => this.isIdle(line, now));
  }

  /** Returns the sequences of the backlog with an expired request. */
  expired(now: number): Line<E>[] {
    return [...this.#backlog].filter(({ expiresAt }) => expiresAt !== 0 && expiresAt <= now);
  }

  /**
   * Returns the earliest time at which `idle` or `expired` may change; undefined while only events can change
   * them.
   */
  wakeAt(): number | undefined {
    let first = Number.POSITIVE_INFINITY;
    for (const line of this.#open.values()) first = Math.min(first, this.#idleAt(line));
    for (const { expiresAt } of this.#backlog) if (expiresAt !== 0) first = Math.min(first, expiresAt);
    return Number.isFinite(first) ? first : undefined;
  }
}
