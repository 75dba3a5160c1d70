import { setImmediate } from 'node:timers/promises';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { limits } from '../../../../shared/limits.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';
import type { Engine } from '../engine.ts';
import { countByClass, draw, emptyQueue, enqueue, type Queue, withdraw } from '../queue.ts';
import type { Clock } from './clock.ts';

/** One request of a sequence. */
export interface Step {
  readonly model: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
  readonly class: RequestClass;
  readonly sequence: { readonly id: number; readonly start: boolean; readonly end: boolean };
  /** Milliseconds the engine may take for it, waiting for a place there not counted. */
  readonly stallMs: number;
  /**
   * Asked once it takes longer: resolves with true when the step may be given up. Until then an answer still counts;
   * `answered` aborts when it has come.
   */
  readonly mayGiveUp: (answered: AbortSignal) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/**
 * What became of a step. `unsent`: it never left; everything else may have reached the engine. `stalled`: no answer in
 * time. `forgotten`: the engine does not know the sequence. `lost`: no engine, or one that failed for a reason that
 * passes. `wrong`: it will not understand this any better the next time.
 */
export type StepOutcome =
  | { readonly ok: true; readonly value: ReadonlyMap<string, Tensor> }
  | {
      readonly ok: false;
      readonly why: 'unsent' | 'gone' | 'stalled' | 'forgotten' | 'lost' | 'wrong';
      readonly detail: string;
    };

interface Job {
  readonly step: Step;
  readonly settle: (outcome: StepOutcome) => void;
}

export interface StepsOptions {
  readonly engine: Pick<Engine, 'infer'>;
  /** Steps at the engine at once. */
  readonly slots: number;
  /** Steps that may wait: one for each stream. */
  readonly capacity: number;
  readonly clock: Clock;
}

export interface Steps {
  run(step: Step): Promise<StepOutcome>;
  queued(): Record<RequestClass, number>;
  busy(): number;
}

/** Given as the reason of an abort that nobody reads: making an error for each step costs more than the step. */
const DONE = 'done';

const failed = (why: Exclude<StepOutcome, { ok: true }>['why'], detail: string): StepOutcome => ({
  ok: false,
  why,
  detail,
});

/**
 * Whether the answer is there after all. When this process was held up, its timers run before what has come meanwhile
 * is read, and the engine must not be blamed for it.
 */
async function answeredBy(over: AbortSignal): Promise<boolean> {
  for (let turn = 0; turn < 2 && !over.aborted; turn++) await setImmediate();
  return over.aborted;
}

/**
 * The way of streams to the engine, beside that of whole utterances: neither can take the other's slots. A2: the most
 * urgent class first, inside a class the one that has waited longest.
 */
export function createSteps({ engine, slots, capacity, clock }: StepsOptions): Steps {
  let queue: Queue = emptyQueue;
  let nextId = 0;
  let busy = 0;
  const jobs = new Map<number, Job>();

  function take(id: number): Job | undefined {
    const job = jobs.get(id);
    jobs.delete(id);
    return job;
  }

  async function ask(step: Step): Promise<StepOutcome> {
    const cancel = new AbortController();
    const over = new AbortController();
    let giveUp: (outcome: StepOutcome) => void = () => {};
    // An engine that does not even notice that it was given up must not hold the stream.
    const givenUp = new Promise<StepOutcome>((resolve) => {
      giveUp = (outcome) => {
        cancel.abort(DONE);
        resolve(outcome);
      };
    });
    const gone = () => giveUp(failed('gone', 'given up'));
    step.signal.addEventListener('abort', gone, { once: true });
    const asked = clock.now();
    const stalled = () => giveUp(failed('stalled', `no answer in ${clock.now() - asked} ms`));
    const late = clock.after(step.stallMs, async () => {
      if (!(await answeredBy(over.signal)) && (await step.mayGiveUp(over.signal))) stalled();
    });
    const tooLate = clock.after(limits.streamPatienceMs.value, async () => {
      if (!(await answeredBy(over.signal))) stalled();
    });
    const answered = engine
      .infer({
        model: step.model,
        inputs: step.inputs,
        outputs: step.outputs,
        priority: classes.indexOf(step.class) + 1,
        timeoutMicros: step.stallMs * 1_000,
        signal: cancel.signal,
        sequence: step.sequence,
      })
      .then((outcome): StepOutcome => {
        if (outcome.ok) return outcome;
        if (outcome.status === 400) return failed('forgotten', outcome.detail);
        return failed(outcome.retryable ? 'lost' : 'wrong', outcome.detail);
      });
    const outcome = await Promise.race([answered, givenUp]);
    over.abort(DONE);
    late();
    tooLate();
    step.signal.removeEventListener('abort', gone);
    return outcome;
  }

  async function serve({ step, settle }: Job): Promise<void> {
    const outcome = step.signal.aborted ? failed('unsent', 'given up') : await ask(step);
    busy--;
    settle(outcome);
    pump();
  }

  function pump() {
    const next = draw(queue, slots - busy, clock.now());
    queue = next.queue;
    for (const { id } of next.late) take(id)?.settle(failed('unsent', 'no place at the engine'));
    for (const { id } of next.start) {
      const job = take(id);
      if (!job) continue;
      busy++;
      void serve(job);
    }
  }

  return {
    run(step) {
      return new Promise((resolve) => {
        const id = nextId++;
        const deadline = clock.now() + limits.streamPatienceMs.value;
        const added = enqueue(queue, { id, class: step.class, deadline }, capacity);
        if (!added.ok) return resolve(failed('unsent', 'queue of steps is full'));
        queue = added.value;
        const leave = () => {
          queue = withdraw(queue, id);
          take(id)?.settle(failed('unsent', 'given up'));
        };
        step.signal.addEventListener('abort', leave, { once: true });
        jobs.set(id, {
          step,
          settle: (outcome) => {
            step.signal.removeEventListener('abort', leave);
            resolve(outcome);
          },
        });
        if (step.signal.aborted) leave();
        pump();
      });
    },
    queued: () => countByClass(queue),
    busy: () => busy,
  };
}
