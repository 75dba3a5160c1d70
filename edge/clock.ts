/** Time and chance, handed in so that a test can hold both. */
export interface Surroundings {
  /** Milliseconds since 1970. In a Worker it moves only across I/O. */
  readonly now: () => number;
  /** 0 up to, not including, 1. */
  readonly random: () => number;
  /** Resolves with `late` after `ms`, unless cancelled. */
  readonly after: (ms: number) => Alarm;
  /** The same as a call, where that is cheaper: gives the function that cancels it. */
  readonly call?: (ms: number, ring: () => void) => () => void;
}

export interface Alarm {
  readonly rings: Promise<typeof late>;
  readonly cancel: () => void;
}

export const late: unique symbol = Symbol('late');

export const realSurroundings: Surroundings = {
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms) => {
    let timer: ReturnType<typeof setTimeout>;
    const rings = new Promise<typeof late>((resolve) => {
      timer = setTimeout(() => resolve(late), ms);
    });
    return { rings, cancel: () => clearTimeout(timer) };
  },
};

/** The same for one request: its alarms, which nearly never ring, share a timer of the runtime. */
export function requestSurroundings(): Surroundings {
  const alarms = new Alarms();
  const call = (ms: number, ring: () => void) => alarms.add(ms, ring);
  const after = (ms: number): Alarm => {
    let cancel = () => {};
    const rings = new Promise<typeof late>((resolve) => {
      cancel = alarms.add(ms, () => resolve(late));
    });
    return { rings, cancel };
  };
  return { now: realSurroundings.now, random: realSurroundings.random, after, call };
}

interface Waiting {
  readonly at: number;
  ring: (() => void) | undefined;
}

const FIRST_LOOK_MS = 100;

class Alarms {
  /** In no order; those that were cancelled go when somebody looks. */
  #waiting: Waiting[] = [];
  /** How many of them were not cancelled. */
  #live = 0;
  /** When the timer of the runtime goes off that will look again. */
  #set = Number.POSITIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Gives the function that cancels it. */
  add(ms: number, ring: () => void): () => void {
    const waiting: Waiting = { at: Date.now() + ms, ring };
    this.#waiting.push(waiting);
    this.#live += 1;
    this.#arm(waiting.at);
    return () => {
      if (!waiting.ring) return;
      waiting.ring = undefined;
      this.#live -= 1;
      if (this.#live === 0) this.#rest();
    };
  }

  /** A timer that is left behind keeps all of its request in memory until it goes off. */
  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#set = Number.POSITIVE_INFINITY;
    this.#waiting = [];
  }

  #arm(at: number): void {
    if (at >= this.#set) return;
    const now = Date.now();
    // Alarms come in any order: with a first look that early, nearly none needs a timer of its own.
    this.#lookAt(this.#set === Number.POSITIVE_INFINITY ? Math.min(at, now + FIRST_LOOK_MS) : at, now);
  }

  #lookAt(at: number, now: number): void {
    // Asking the runtime costs, also when there is nothing to clear.
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#set = at;
    this.#timer = setTimeout(() => this.#look(at), Math.max(0, at - now));
  }

  #look(at: number): void {
    this.#timer = undefined;
    this.#set = Number.POSITIVE_INFINITY;
    const due = this.#waiting.filter((one) => one.at <= at);
    this.#waiting = this.#waiting.filter((one) => one.at > at && one.ring);
    this.#live = this.#waiting.length;
    const next = this.#waiting.reduce((least, one) => Math.min(least, one.at), Number.POSITIVE_INFINITY);
    if (next < Number.POSITIVE_INFINITY) this.#lookAt(next, Date.now());
    for (const one of due) {
      const { ring } = one;
      one.ring = undefined;
      ring?.();
    }
  }
}

/** The value, or `late` when it took longer than `ms`. What comes too late is dropped, errors included. */
export function within<T>(work: Promise<T>, ms: number, surroundings: Surroundings): Promise<T | typeof late> {
  return new Promise((resolve, reject) => {
    const cancel = callAfter(ms, () => resolve(late), surroundings);
    work.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}

/** Calls `ring` after `ms`, unless it is cancelled: by the function that this gives. */
export function callAfter(ms: number, ring: () => void, { after, call }: Surroundings): () => void {
  if (call) return call(ms, ring);
  const alarm = after(ms);
  void alarm.rings.then(ring);
  return alarm.cancel;
}
