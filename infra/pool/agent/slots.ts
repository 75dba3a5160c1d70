import type { RequestClass } from '../../../shared/tenant/claims.ts';
import { countByClass, draw, emptyQueue, enqueue, type Queue, withdraw } from './queue.ts';

/** How urgent work is, and until when anybody wants it. */
export interface Place {
  readonly class: RequestClass;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** Why work was never begun: no place to wait, nobody wants it any more, or its deadline came first. */
export type Unbegun = 'full' | 'gone' | 'late';

export interface Work {
  /** Has a slot until it resolves, with what is to be said once the slot is free. Must not reject. */
  begin(): Promise<() => void>;
  giveUp(why: Unbegun): void;
}

export interface SlotsOptions {
  /** Work going on at once. */
  readonly slots: number;
  /** Work that may wait. */
  readonly capacity: number;
  readonly now: () => number;
}

interface Waiter {
  readonly place: Place;
  readonly work: Work;
  readonly leave: () => void;
}

/** A2: a bounded queue by class and deadline before a fixed number of slots. */
export function createSlots({ slots, capacity, now }: SlotsOptions) {
  let queue: Queue = emptyQueue;
  let nextId = 0;
  let busy = 0;
  const waiting = new Map<number, Waiter>();

  function take(id: number): Work | undefined {
    const waiter = waiting.get(id);
    if (!waiter) return undefined;
    waiting.delete(id);
    waiter.place.signal.removeEventListener('abort', waiter.leave);
    return waiter.work;
  }

  async function begin(work: Work): Promise<void> {
    busy++;
    const tell = await work.begin();
    busy--;
    tell();
    if (waiting.size > 0) pump();
  }

  function pump() {
    const next = draw(queue, slots - busy, now());
    queue = next.queue;
    for (const { id } of next.late) take(id)?.giveUp('late');
    for (const { id } of next.start) {
      const work = take(id);
      if (work) void begin(work);
    }
  }

  function wait(place: Place, work: Work): void {
    const id = nextId++;
    const added = enqueue(queue, { id, class: place.class, deadline: place.deadline }, capacity);
    if (!added.ok) {
      work.giveUp('full');
      return;
    }
    queue = added.value;
    // Who ends gives the place in the queue back at once.
    const leave = () => {
      queue = withdraw(queue, id);
      take(id)?.giveUp('gone');
    };
    place.signal.addEventListener('abort', leave, { once: true });
    waiting.set(id, { place, work, leave });
    pump();
  }

  return {
    /** Begins it at once or when a slot is free, or gives it up: exactly one of both. */
    run(place: Place, work: Work): void {
      if (place.signal.aborted) work.giveUp('gone');
      else if (busy < slots && waiting.size === 0 && place.deadline > now()) void begin(work);
      else wait(place, work);
    },
    queued: (): Record<RequestClass, number> => countByClass(queue),
    busy: () => busy,
  };
}
