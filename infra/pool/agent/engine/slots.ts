import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import type { Span } from '../../../../shared/trace/span.ts';
import type { QueueOutcome } from '../degrade/degrade.ts';
import {
  countAhead,
  countByClass,
  draw,
  emptyQueue,
  enqueue,
  noTurns,
  type Queue,
  type Waiting,
  withdraw,
} from './queue.ts';
import { isOff, noWindows, release, type Windows } from './windows.ts';

/** Urgency, owner and deadline of work that needs a slot. */
export interface SlotRequest {
  readonly class: RequestClass;
  /** Slots are shared fairly between the tenants of a class. Absent: the agent's own work, and live streams. */
  readonly tenant?: string | undefined;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  /** Span of the request; the engine's is its child. */
  readonly span?: Span | undefined;
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
  /** Current windows (A13); none by default. */
  readonly windows?: (() => Windows) | undefined;
  /** Called once for each piece of work, when it leaves the queue or was refused by it. */
  readonly onQueued?: ((name: RequestClass, outcome: QueueOutcome) => void) | undefined;
}

interface Waiter {
  readonly request: SlotRequest;
  readonly work: Work;
  readonly since: number;
  readonly leave: () => void;
}

/** A2: a bounded queue by class, tenant and deadline before a fixed number of slots. */
export function createSlots({ slots, capacity, now, windows = () => noWindows, onQueued = () => {} }: SlotsOptions) {
  let alarm: NodeJS.Timeout | undefined;
  let queue: Queue = emptyQueue;
  let turns = noTurns;
  let nextId = 0;
  let busy = 0;
  const waiting = new Map<number, Waiter>();

  function take(id: number): Waiter | undefined {
    const waiter = waiting.get(id);
    if (!waiter) return undefined;
    waiting.delete(id);
    waiter.request.signal.removeEventListener('abort', waiter.leave);
    return waiter;
  }

  async function begin(work: Work, { class: name, onStart }: SlotRequest, waitMs: number): Promise<void> {
    busy++;
    onQueued(name, { waitMs });
    onStart?.();
    const finish = await work.begin();
    busy--;
    finish();
    if (waiting.size > 0) pump();
  }

  function giveUp(id: number, why: Unbegun): void {
    const waiter = take(id);
    if (!waiter) return;
    // Work whose caller left counts by its wait.
    onQueued(waiter.request.class, why === 'gone' ? { waitMs: now() - waiter.since } : 'refused');
    waiter.work.giveUp(why);
  }

  function pump() {
    clearTimeout(alarm);
    const at = now();
    const { ready, wakeAt } = release(queue, windows(), slots - busy, at);
    if (wakeAt !== undefined && busy < slots) alarm = setTimeout(pump, Math.max(1, wakeAt - at));
    const next = draw(ready, turns, slots - busy, at);
    turns = next.turns;
    const left = new Set<Waiting>([...next.start, ...next.late]);
    queue = queue.filter((one) => !left.has(one));
    for (const { id } of next.late) giveUp(id, 'late');
    for (const { id } of next.start) {
      const waiter = take(id);
      if (waiter) void begin(waiter.work, waiter.request, at - waiter.since);
    }
  }

  function wait(request: SlotRequest, work: Work): void {
    const id = nextId++;
    const { class: name, tenant = '', deadline } = request;
    const since = now();
    const added = enqueue(queue, { id, class: name, tenant, deadline, since }, since, capacity);
    if (!added.ok) {
      onQueued(name, 'refused');
      work.giveUp('full');
      return;
    }
    queue = added.value.queue;
    for (const displaced of added.value.displaced) giveUp(displaced.id, 'full');
    // An aborted signal frees the entry at once.
    const leave = () => {
      queue = withdraw(queue, id);
      giveUp(id, 'gone');
    };
    request.signal.addEventListener('abort', leave, { once: true });
    waiting.set(id, { request, work, since, leave });
    pump();
  }

  return {
    /** Begins it at once or when a slot is free, or gives it up: exactly one of both. */
    run(request: SlotRequest, work: Work): void {
      if (request.signal.aborted) work.giveUp('gone');
      else if (isOff(windows()) && busy < slots && waiting.size === 0 && request.deadline > now()) {
        void begin(work, request, 0);
      } else wait(request, work);
    },
    queued: (): Record<RequestClass, number> => countByClass(queue),
    ahead: (next: Pick<Waiting, 'class' | 'tenant'>): number => countAhead(queue, next),
    busy: () => busy,
  };
}
