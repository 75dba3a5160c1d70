import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import { countByClass, draw, emptyQueue, enqueue, noTurns, type Queue, withdraw } from './queue.ts';

/** Urgency, owner and deadline of work that needs a slot. */
export interface Place {
  readonly class: RequestClass;
  /** Slots are shared fairly between the tenants of a class. Absent: the agent's own work, and live streams. */
  readonly tenant?: string | undefined;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  /** Called when the work gets its slot. */
  readonly onStart?: (() => void) | undefined;
}

/** Why work was never begun: the queue is full or gave its entry to other work, the signal aborted, or the deadline passed. */
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

/** A2: a bounded queue by class, tenant and deadline before a fixed number of slots. */
export function createSlots({ slots, capacity, now }: SlotsOptions) {
  let queue: Queue = emptyQueue;
  let turns = noTurns;
  let nextId = 0;
  let busy = 0;
  const waiting = new Map<number, Waiter>();

  function take(id: number): Waiter | undefined {
    const waiter = waiting.get(id);
    if (!waiter) return undefined;
    waiting.delete(id);
    waiter.place.signal.removeEventListener('abort', waiter.leave);
    return waiter;
  }

  async function begin(work: Work, { onStart }: Place): Promise<void> {
    busy++;
    onStart?.();
    const finish = await work.begin();
    busy--;
    finish();
    if (waiting.size > 0) pump();
  }

  function pump() {
    const next = draw(queue, turns, slots - busy, now());
    queue = next.queue;
    turns = next.turns;
    for (const { id } of next.late) take(id)?.work.giveUp('late');
    for (const { id } of next.start) {
      const waiter = take(id);
      if (waiter) void begin(waiter.work, waiter.place);
    }
  }

  function wait(place: Place, work: Work): void {
    const id = nextId++;
    const { class: name, tenant = '', deadline } = place;
    const added = enqueue(queue, { id, class: name, tenant, deadline }, now(), capacity);
    if (!added.ok) {
      work.giveUp('full');
      return;
    }
    queue = added.value.queue;
    for (const displaced of added.value.displaced) take(displaced.id)?.work.giveUp('full');
    // An aborted signal frees the entry at once.
    const leave = () => {
      queue = withdraw(queue, id);
      take(id)?.work.giveUp('gone');
    };
    place.signal.addEventListener('abort', leave, { once: true });
    waiting.set(id, { place, work, leave });
    pump();
  }

  return {
    /** Begins it at once or when a slot is free, or gives it up: exactly one of both. */
    run(place: Place, work: Work): void {
      if (place.signal.aborted) work.giveUp('gone');
      else if (busy < slots && waiting.size === 0 && place.deadline > now()) void begin(work, place);
      else wait(place, work);
    },
    queued: (): Record<RequestClass, number> => countByClass(queue),
    busy: () => busy,
  };
}
