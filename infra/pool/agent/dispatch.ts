import type { Tensor } from '../../../shared/kserve/tensor.ts';
import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { classes, type RequestClass } from '../../../shared/tenant/claims.ts';
import type { Engine } from './engine.ts';
import { bugDetail } from './log.ts';
import { countByClass, draw, emptyQueue, enqueue, type Queue, withdraw } from './queue.ts';

/** How urgent work is, and until when anybody wants it. */
export interface Place {
  readonly class: RequestClass;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** One utterance's inference. */
export interface Task extends Place {
  readonly model: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
}

type Answer = Result<ReadonlyMap<string, Tensor>>;

interface Job {
  /** The slot is needed until it resolves: with whether it was of use, and how to tell the caller. */
  readonly work: () => Promise<{ readonly served: boolean; readonly tell: () => void }>;
  /** Nobody will do it any more. */
  readonly giveUp: () => void;
}

export interface Dispatcher {
  /** Waits for a slot, infers, tries once more when that may help. Never rejects. */
  run(task: Task): Promise<Answer>;
  /** Waits for a slot and keeps it while `work` runs. Never rejects: a bug is a refusal like any other. */
  hold<T>(place: Place, work: () => Promise<Result<T>>): Promise<Result<T>>;
  queued(): Record<RequestClass, number>;
  busy(): number;
}

export interface DispatcherOptions {
  readonly engine: Engine;
  readonly slots: number;
  readonly now: () => number;
  /** Told how long each utterance held its slot, for the heartbeat and the metrics. */
  readonly onServed?: (milliseconds: number) => void;
}

const gone = no(refuse('deadline_passed', undefined, 'given up while queued'));

/** The only way to the engine: a bounded queue by class and deadline before a fixed number of slots. */
export function createDispatcher({ engine, slots, now, onServed = () => {} }: DispatcherOptions): Dispatcher {
  let queue: Queue = emptyQueue;
  let nextId = 0;
  let busy = 0;
  const jobs = new Map<number, Job>();

  function take(id: number): Job | undefined {
    const job = jobs.get(id);
    jobs.delete(id);
    return job;
  }

  async function attempt(task: Task): Promise<Answer & { retryable?: boolean }> {
    const left = Math.min(task.deadline - now(), limits.engineMs.value);
    if (left <= 0 || task.signal.aborted) return gone;
    const timeout = AbortSignal.timeout(left);
    const outcome = await engine.infer({
      ...task,
      priority: classes.indexOf(task.class) + 1,
      timeoutMicros: left * 1_000,
      signal: AbortSignal.any([task.signal, timeout]),
    });
    if (outcome.ok) return ok(outcome.value);
    // The request's own time ran out, as opposed to the engine's.
    if (task.signal.aborted || (timeout.aborted && left < limits.engineMs.value)) return gone;
    return { ...no(refuse('engine_failed', undefined, outcome.detail)), retryable: outcome.retryable };
  }

  async function serve(job: Job): Promise<void> {
    const started = now();
    const { served, tell } = await job.work();
    busy--;
    if (served) onServed(now() - started);
    tell();
    pump();
  }

  function pump() {
    const next = draw(queue, slots - busy, now());
    queue = next.queue;
    for (const { id } of next.late) take(id)?.giveUp();
    for (const { id } of next.start) {
      const job = take(id);
      if (!job) continue;
      busy++;
      void serve(job);
    }
  }

  function hold<T>(place: Place, work: () => Promise<Result<T>>): Promise<Result<T>> {
    return new Promise((resolve) => {
      const id = nextId++;
      const added = enqueue(queue, { id, class: place.class, deadline: place.deadline });
      if (!added.ok) return resolve(added);
      queue = added.value;
      // A request that ends gives its place in the queue back at once.
      const leave = () => {
        queue = withdraw(queue, id);
        take(id)?.giveUp();
      };
      const settle = (answer: Result<T>) => {
        place.signal.removeEventListener('abort', leave);
        resolve(answer);
      };
      place.signal.addEventListener('abort', leave, { once: true });
      jobs.set(id, {
        async work() {
          // A bug in one piece of work must not take the process along, nor its slot.
          const answer = await work().catch((error: unknown) => no(refuse('internal', undefined, bugDetail(error))));
          return { served: answer.ok, tell: () => settle(answer) };
        },
        giveUp: () => settle(gone),
      });
      if (place.signal.aborted) leave();
      pump();
    });
  }

  async function inferTwice(task: Task): Promise<Answer> {
    const answer = await attempt(task);
    return !answer.ok && answer.retryable ? attempt(task) : answer;
  }

  return {
    run: (task) => hold(task, () => inferTwice(task)),
    hold,
    queued: () => countByClass(queue),
    busy: () => busy,
  };
}
