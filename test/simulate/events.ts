type Run = () => void;

/** A clock whose time passes from one scheduled event to the next. */
export interface Simulation {
  /** Epoch ms. */
  now(): number;
  /** Runs `run` after `ms`. Events of the same time run in the order of their scheduling. */
  after(ms: number, run: Run): void;
  /** Runs all events up to this time, epoch ms. */
  runUntil(end: number): void;
  /** Events run so far. */
  count(): number;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: Run;
}

const before = (a: Event, b: Event) => a.at < b.at || (a.at === b.at && a.order < b.order);

/** Returns a discrete-event simulation that starts at `start`, epoch ms: a binary heap by time. */
export function createSimulation(start: number): Simulation {
  const heap: Event[] = [];
  let now = start;
  let order = 0;
  let count = 0;

  function push(event: Event): void {
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Event;
      if (!before(event, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  function pop(): Event {
    const first = heap[0] as Event;
    const last = heap.pop() as Event;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1] as Event, heap[child] as Event)) child += 1;
      if (!before(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
    return first;
  }

  return {
    now: () => now,
    after(ms, run) {
      order += 1;
      push({ at: now + Math.max(0, ms), order, run });
    },
    runUntil(end) {
      while (heap.length > 0 && (heap[0] as Event).at <= end) {
        const event = pop();
        now = event.at;
        count += 1;
        event.run();
      }
      now = end;
    },
    count: () => count,
  };
}
