// A pool agent without sockets: admission, queue and draw are those of the agent, its engine is a service time.
import { waitsTooLong } from '../../infra/pool/agent/engine/expected-wait.ts';
import { silentAfter } from '../../infra/pool/agent/engine/patience.ts';
import {
  countAhead,
  countByClass,
  draw,
  emptyQueue,
  enqueue,
  noTurns,
  type Queue,
  type Turns,
  withdraw,
} from '../../infra/pool/agent/engine/queue.ts';
import { createServiceTime } from '../../infra/pool/agent/engine/serving-time.ts';
import { createRequestSlots, type RequestSlot } from '../../infra/pool/agent/request/request-slots.ts';
import type { Load } from '../../shared/pool/heartbeat.ts';
import type { Reason } from '../../shared/refusal.ts';
import { classes, type RequestClass } from '../../shared/tenant/claims.ts';
import type { Simulation } from './events.ts';
import type { PoolPlan } from './fleet.ts';

/** `stuck`: its engine finishes nothing. `down`: connections are refused. `dark`: nothing answers. */
export type State = 'up' | 'stuck' | 'down' | 'dark';

export interface Job {
  readonly class: RequestClass;
  readonly tenant: string;
  /** Epoch ms. */
  readonly deadline: number;
  /** Size of the work; 1 takes the device's mean time. */
  readonly size: number;
  /** Receives the end: the milliseconds of service, or a refusal. */
  readonly end: (served: number | Reason) => void;
}

interface Entered extends Job {
  readonly id: number;
  readonly slot: RequestSlot;
  readonly queuedAt: number;
  ended: boolean;
}

export class SimulatedAgent {
  readonly plan: PoolPlan;
  state: State = 'up';
  /** Factor of the service time. */
  slowness = 1;
  /** Open live streams. */
  streams = 0;
  /** Requests on their way to the agent. */
  coming = 0;
  readonly #simulation: Simulation;
  readonly #slots: ReturnType<typeof createRequestSlots>;
  readonly #serviceTime: ReturnType<typeof createServiceTime>;
  readonly #jobs = new Map<number, Entered>();
  #queue: Queue = emptyQueue;
  #turns: Turns = noTurns;
  #busy = 0;
  #nextId = 0;
  #lostAt = Number.NEGATIVE_INFINITY;

  constructor(plan: PoolPlan, simulation: Simulation) {
    this.plan = plan;
    this.#simulation = simulation;
    this.#slots = createRequestSlots(simulation.now);
    this.#serviceTime = createServiceTime(simulation.now);
  }

  /** Returns what the agent reports. */
  load(): Load {
    const slotless = this.#slots.full();
    const full = classes.filter((name) => slotless.includes(name) || this.#waitsTooLong({ class: name, tenant: '' }));
    return {
      busy: this.#jobs.size,
      streams: this.streams,
      queued: countByClass(this.#queue),
      serviceMs: this.#serviceTime.mean(),
      draining: false,
      engineReady: true,
      ...(full.length > 0 && { full }),
    };
  }

  /** Work before a request of this class now, running and on its way included, and waiting work that it overtakes. */
  backlog(name: RequestClass): { readonly ahead: number; readonly behind: number } {
    const urgent = classes.slice(0, classes.indexOf(name) + 1);
    const before = this.#queue.filter((one) => urgent.includes(one.class)).length;
    return { ahead: this.#busy + before + this.coming, behind: this.#queue.length - before };
  }

  submit(job: Job): void {
    const { now } = this.#simulation;
    if (this.state === 'down' || this.state === 'dark') {
      job.end('pool_lost');
      return;
    }
    if (this.#waitsTooLong(job)) {
      job.end('pool_busy');
      return;
    }
    const entered = this.#slots.enter(job);
    if (!entered.ok) {
      job.end(entered.refusal.reason);
      return;
    }
    const id = this.#nextId++;
    const one: Entered = { ...job, id, slot: entered.value, queuedAt: now(), ended: false };
    this.#jobs.set(id, one);
    entered.value.signal.onabort = () => this.#finish(one, 'pool_busy');
    const free = this.plan.description.slots - this.#busy;
    if (free > 0 && this.#queue.length === 0) {
      this.#start(one);
      return;
    }
    const queued = enqueue(this.#queue, one, now());
    if (!queued.ok) {
      this.#finish(one, queued.refusal.reason);
      return;
    }
    this.#queue = queued.value.queue;
    for (const { id: displaced } of queued.value.displaced) this.#finishId(displaced, 'pool_busy');
    this.#drawNext();
  }

  /** Ends all work; its callers notice after `ms`: at once when the process was killed, late when the network is away. */
  lose(ms: number): void {
    this.#queue = emptyQueue;
    this.#busy = 0;
    for (const one of [...this.#jobs.values()]) {
      this.#leave(one);
      this.#simulation.after(ms, () => one.end('pool_lost'));
    }
  }

  #waitsTooLong(next: Pick<Job, 'class' | 'tenant'>): boolean {
    const { slots } = this.plan.description;
    return waitsTooLong(next.class, {
      ahead: countAhead(this.#queue, next),
      ...{ slots, busy: this.#busy, serviceMs: this.#serviceTime.mean() },
      urgentSlots: this.#serviceTime.urgentSlots(next.class),
    });
  }

  #start(one: Entered): void {
    const { now, after } = this.#simulation;
    if (this.state === 'stuck' && this.#lostAt >= one.queuedAt) {
      this.#finish(one, 'engine_failed');
      return;
    }
    this.#busy += 1;
    one.slot.start();
    const began = now();
    const ms = one.size * this.plan.meanMs * this.slowness;
    const free = () => {
      this.#busy -= 1;
      this.#drawNext();
    };
    if (this.state === 'stuck') {
      this.#hang(one, free);
      return;
    }
    after(ms, () => {
      if (one.ended) return;
      if (this.state === 'stuck') {
        this.#hang(one, free);
        return;
      }
      this.#serviceTime.add(now() - began, one.class);
      this.#finish(one, ms);
      free();
    });
  }

  /** Waits for an engine that says nothing, as long as the agent does. */
  #hang(one: Entered, free: () => void): void {
    this.#simulation.after(silentAfter(this.plan.meanMs), () => {
      if (one.ended) return;
      this.#lostAt = this.#simulation.now();
      this.#finish(one, 'engine_failed');
      free();
    });
  }

  #drawNext(): void {
    if (this.#queue.length === 0) return;
    const free = this.plan.description.slots - this.#busy;
    const drawn = draw(this.#queue, this.#turns, free, this.#simulation.now());
    this.#queue = drawn.queue;
    this.#turns = drawn.turns;
    for (const { id } of drawn.late) this.#finishId(id, 'deadline_passed');
    for (const { id } of drawn.start) {
      const one = this.#jobs.get(id);
      if (one) this.#start(one);
    }
    if (this.#queue.length > 0 && drawn.start.length > 0 && this.#busy < this.plan.description.slots) this.#drawNext();
  }

  #finishId(id: number, why: Reason): void {
    const one = this.#jobs.get(id);
    if (one) this.#finish(one, why);
  }

  #leave(one: Entered): void {
    one.ended = true;
    this.#jobs.delete(one.id);
    one.slot.leave();
  }

  #finish(one: Entered, result: number | Reason): void {
    if (one.ended) return;
    this.#leave(one);
    if (result === 'pool_busy') this.#queue = withdraw(this.#queue, one.id);
    one.end(result);
  }
}
