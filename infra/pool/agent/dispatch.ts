import type { Tensor } from '../../../shared/kserve/tensor.ts';
import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { classes, type RequestClass } from '../../../shared/tenant/claims.ts';
import type { Engine } from './engine.ts';
import { countByClass, draw, emptyQueue, enqueue, type Queue, withdraw } from './queue.ts';

/** One utterance's inference. */
export interface Task {
  readonly model: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
  readonly class: RequestClass;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  readonly signal: AbortSignal;
}

type Answer = Result<ReadonlyMap<string, Tensor>>;

interface Job {
  readonly task: Task;
  readonly settle: (answer: Answer) => void;
}

export interface Dispatcher {
  /** Waits for a slot, infers, tries once more when that may help. Never rejects. */
  run(task: Task): Promise<Answer>;
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
    let answer = await attempt(job.task);
    if (!answer.ok && answer.retryable) answer = await attempt(job.task);
    busy--;
    if (answer.ok) onServed(now() - started);
    job.settle(answer);
    pump();
  }

  function pump() {
    const next = draw(queue, slots - busy, now());
    queue = next.queue;
    for (const { id } of next.late) take(id)?.settle(gone);
    for (const { id } of next.start) {
      const job = take(id);
      if (!job) continue;
      busy++;
      void serve(job);
    }
  }

  return {
    run(task) {
      return new Promise((resolve) => {
        const id = nextId++;
        const added = enqueue(queue, { id, class: task.class, deadline: task.deadline });
        if (!added.ok) return resolve(added);
        queue = added.value;
        // A request that ends gives its place in the queue back at once.
        const leave = () => {
          queue = withdraw(queue, id);
          take(id)?.settle(gone);
        };
        task.signal.addEventListener('abort', leave, { once: true });
        jobs.set(id, {
          task,
          settle: (answer) => {
            task.signal.removeEventListener('abort', leave);
            resolve(answer);
          },
        });
        if (task.signal.aborted) leave();
        pump();
      });
    },
    queued: () => countByClass(queue),
    busy: () => busy,
  };
}
