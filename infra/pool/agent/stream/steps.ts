import { setImmediate } from 'node:timers/promises';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Refusal } from '../../../../shared/refusal.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';
import type { Engine } from '../engine/engine.ts';
import { createSlots, type Unbegun } from '../engine/slots.ts';
import type { Clock } from './clock.ts';

/**
 * Time without one accepted step after which the agent gives up its engine, so that the edge finds another.
 */
export const STREAM_PATIENCE_MS = 5_000;

/** One request of a stream: a step of a sequence, or a whole recording without one. */
export interface Step {
  readonly model: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
  readonly class: RequestClass;
  readonly sequence?: { readonly id: number; readonly start: boolean; readonly end: boolean };
  /** Milliseconds the engine may take for it, waiting for a place there not counted. */
  readonly stallMs: number;
  /**
   * Called once the step takes longer. Resolves with true when the step may be given up; until then an answer counts.
   * `answered` aborts when the answer has come.
   */
  readonly mayGiveUp: (answered: AbortSignal) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/**
 * Outcome of a step. `unsent`: it never left; every other step may have reached the engine. `stalled`: no answer in time.
 * `forgotten`: the engine does not know the sequence. `lost`: no engine, or a failure that passes. `wrong`: a failure
 * that would happen again.
 */
export type StepOutcome =
  | { readonly ok: true; readonly value: ReadonlyMap<string, Tensor> }
  | {
      readonly ok: false;
      readonly why: 'unsent' | 'gone' | 'stalled' | 'forgotten' | 'lost' | 'wrong';
      readonly detail: string;
      /** Refusal of the engine, where it tells one. */
      readonly refusal?: Refusal | undefined;
    };

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

/** Reason of aborts: an error for each step would cost more than the step. */
const DONE = 'done';

const UNSENT: Readonly<Record<Unbegun, string>> = {
  full: 'queue of steps is full',
  gone: 'given up',
  late: 'no place at the engine',
};

type FailedStep = Extract<StepOutcome, { ok: false }>;

const failed = (why: FailedStep['why'], detail: string): FailedStep => ({
  ok: false,
  why,
  detail,
});

/** Sends one step, which has a slot. */
function inferStep(engine: Pick<Engine, 'infer'>, clock: Clock, step: Step): Promise<StepOutcome> {
  return new Promise((resolve) => {
    const cancel = new AbortController();
    const sentAt = clock.now();
    let over: AbortController | undefined;
    let settled = false;
    let stopClock = clock.after(step.stallMs, () => void late());

    function settle(outcome: StepOutcome) {
      if (settled) return;
      settled = true;
      over?.abort(DONE);
      stopClock();
      step.signal.removeEventListener('abort', gone);
      resolve(outcome);
    }
    // Settles first: an engine that does not notice the abort must not hold the stream.
    function giveUp(outcome: StepOutcome) {
      settle(outcome);
      cancel.abort(DONE);
    }
    const gone = () => giveUp(failed('gone', 'given up'));
    const stalled = () => giveUp(failed('stalled', `no answer in ${clock.now() - sentAt} ms`));

    /**
     * Returns whether the answer is there after all. When this process was held up, its timers run before what has come
     * meanwhile is read, and the engine must not be blamed for it.
     */
    async function answered(): Promise<boolean> {
      for (let turn = 0; turn < 2 && !settled; turn++) await setImmediate();
      return settled;
    }
    async function late() {
      over = new AbortController();
      stopClock = clock.after(Math.max(0, sentAt + STREAM_PATIENCE_MS - clock.now()), () => void tooLate());
      if (!(await answered()) && (await step.mayGiveUp(over.signal))) stalled();
    }
    async function tooLate() {
      if (!(await answered())) stalled();
    }

    step.signal.addEventListener('abort', gone, { once: true });
    engine
      .infer({
        model: step.model,
        inputs: step.inputs,
        outputs: step.outputs,
        priority: classes.indexOf(step.class) + 1,
        timeoutMicros: step.stallMs * 1_000,
        signal: cancel.signal,
        ...(step.sequence && { sequence: step.sequence }),
      })
      .then((outcome) => {
        if (outcome.ok) settle(outcome);
        else if (outcome.status === 400 && step.sequence) settle(failed('forgotten', outcome.detail));
        else settle({ ...failed(outcome.retryable ? 'lost' : 'wrong', outcome.detail), refusal: outcome.refusal });
      });
  });
}

/**
 * The queue of streams before the engine. It has slots of its own beside those of whole utterances. A2: the most urgent
 * class first, inside a class in order of arrival.
 */
export function createSteps({ engine, slots: most, capacity, clock }: StepsOptions): Steps {
  const slots = createSlots({ slots: most, capacity, now: clock.now });

  return {
    run: (step) =>
      new Promise((resolve) => {
        const deadline = clock.now() + STREAM_PATIENCE_MS;
        slots.run(
          { class: step.class, deadline, signal: step.signal },
          {
            async begin() {
              const outcome = await inferStep(engine, clock, step);
              return () => resolve(outcome);
            },
            giveUp: (why) => resolve(failed('unsent', UNSENT[why])),
          },
        );
      }),
    queued: slots.queued,
    busy: slots.busy,
  };
}
