/** Where a sequence lives: its state is in one instance, and nobody else's is in that slot. */
export interface Seat {
  readonly instance: number;
  readonly slot: number;
}

/** One sequence, from its START until nothing of it is left, with what waits of it in order. */
export interface Line<E> {
  readonly key: string;
  /** None while it waits for one: that is Triton's backlog. */
  readonly seat: Seat | undefined;
  readonly waiting: readonly E[];
  /** One of its requests is with the instance. */
  readonly busy: boolean;
  /** Whether requests with its id still join it. */
  readonly open: boolean;
}

interface Entry<E> extends Line<E> {
  seat: Seat | undefined;
  waiting: E[];
  busy: boolean;
  open: boolean;
  /** When it was last heard of, or last answered. */
  lastAt: number;
  /** When what waits without a seat is given up; 0: never. */
  expiresAt: number;
}

/**
 * Who sits where, who comes next, whose time is over. Triton's rules (sequence_batch_scheduler.cc), but for one: a
 * sequence is idle only while nothing of it waits or runs, so that a slow machine does not forget those who wait for it.
 * It knows the time only as far as it is told; microseconds.
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

  /** Requests whose turn has not come. */
  get waiting(): number {
    return this.#waiting;
  }

  all(): Line<E>[] {
    return [...this.#all];
  }

  /** The sequence of that id, if it is going on. */
  find(key: string): Line<E> | undefined {
    return this.#open.get(key);
  }

  /** Where a request belongs: behind those of its sequence, on a new line if it starts one; nowhere without a START. */
  join(
    key: string,
    flags: { start: boolean; end: boolean },
    entry: E,
    now: number,
    timeoutUs = 0,
  ): Line<E> | undefined {
    const known = this.#open.get(key);
    if (!known && !flags.start) return undefined;
    const line = known ?? this.#begin(key);
    line.waiting.push(entry);
    this.#waiting++;
    line.lastAt = now;
    if (!line.seat && timeoutUs > 0)
      line.expiresAt = line.expiresAt === 0 ? now + timeoutUs : Math.min(line.expiresAt, now + timeoutUs);
    if (flags.end) this.end(line);
    return line;
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

  /** The request of this line whose turn it is; from then on the line is busy until it is `done`. */
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

  /** Nobody joins any more; what waits still has its turn. */
  end(line: Line<E>): void {
    (line as Entry<E>).open = false;
    if (this.#open.get(line.key) === line) this.#open.delete(line.key);
  }

  /** Takes these out of the line. */
  drop(line: Line<E>, from: number, count: number): E[] {
    const dropped = (line as Entry<E>).waiting.splice(from, count);
    this.#waiting -= dropped.length;
    return dropped;
  }

  /**
   * Takes away what has ended and has nothing left. Says whose seat is free again, and which line of the backlog has it
   * now.
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

  /** Whether nothing was heard of this open line for too long. */
  isIdle(line: Line<E>, now: number): boolean {
    return this.#idleAt(line as Entry<E>) <= now;
  }

  idle(now: number): Line<E>[] {
    return [...this.#open.values()].filter((line) => this.isIdle(line, now));
  }

  /** Lines of the backlog that have waited for longer than one of their requests allows. */
  expired(now: number): Line<E>[] {
    return [...this.#backlog].filter(({ expiresAt }) => expiresAt !== 0 && expiresAt <= now);
  }

  /** When `idle` or `expired` may next say something; undefined: not before something else happens. */
  askAt(): number | undefined {
    let first = Number.POSITIVE_INFINITY;
    for (const line of this.#open.values()) first = Math.min(first, this.#idleAt(line));
    for (const { expiresAt } of this.#backlog) if (expiresAt !== 0) first = Math.min(first, expiresAt);
    return Number.isFinite(first) ? first : undefined;
  }
}
