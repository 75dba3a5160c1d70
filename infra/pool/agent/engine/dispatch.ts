import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';
import type { Span } from '../../../../shared/trace/span.ts';
import { ENGINE_MS } from '../settings/limits.ts';
import { bugDetail } from '../telemetry/log.ts';
import type { Engine } from './engine.ts';
import { levelOf } from './level.ts';
import { QUEUED_UTTERANCES_MAX } from './limits.ts';
import { createPatience } from './patience.ts';
import { createSlots, type SlotRequest, type SlotsOptions } from './slots.ts';

/** One utterance's inference. */
export interface Task extends SlotRequest {
  readonly model: string;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly string[];
}

type Answer = Result<ReadonlyMap<string, Tensor>>;

export interface Dispatcher {
  /** Waits for a slot, infers, tries once more when that may help. Never rejects. */
  run(task: Task): Promise<Answer>;
  /**
   * Waits for a slot and keeps it while `work` runs, in a span of the engine where the request has one. Never rejects: a
   * bug is a refusal like any other.
   */
  hold<T>(request: SlotRequest, work: (span?: Span) => Promise<Result<T>>): Promise<Result<T>>;
  queued(): Record<RequestClass, number>;
  /** Waiting utterances that start before a new one of this class and tenant. */
  ahead(next: { readonly class: RequestClass; readonly tenant: string }): number;
  busy(): number;
}

export interface DispatcherOptions extends Pick<SlotsOptions, 'windows' | 'onQueued'> {
  readonly engine: Engine;
  readonly slots: number;
  /** Priority levels of a model at the engine; not said, one for each class. */
  readonly levels?: (model: string) => number;
  readonly now: () => number;
  /** Receives how long each utterance held its slot, for the heartbeat and the metrics. */
  readonly onServed?: (milliseconds: number, name: RequestClass) => void;
}

const gone = no(refuse('deadline_passed', undefined, 'given up while queued'));
const silent = no(refuse('engine_failed', undefined, 'the engine says nothing'));
const full = no(refuse('pool_busy', undefined, 'utterance queue is full'));

/** The only way to the engine: a bounded queue by class, tenant and deadline before a fixed number of slots. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { engine, slots: most, levels = () => classes.length, now, onServed = () => {} } = options;
  const { windows, onQueued } = options;
  const slots = createSlots({ slots: most, capacity: QUEUED_UTTERANCES_MAX, now, windows, onQueued });
  const patience = createPatience(now);

  async function attempt(task: Task, span: Span | undefined): Promise<Answer & { retryable?: boolean }> {
    const left = Math.min(task.deadline - now(), ENGINE_MS);
    if (left <= 0 || task.signal.aborted) return gone;
    const timeout = AbortSignal.timeout(left);
    const lost = new AbortController();
    const unwatch = patience.watch(task.model, () => lost.abort());
    const began = now();
    const outcome = await engine
      .infer({
        ...task,
        priority: levelOf(task.class, levels(task.model)),
        timeoutMicros: left * 1_000,
        traceparent: span?.traceparent,
        signal: AbortSignal.any([task.signal, timeout, lost.signal]),
      })
      .finally(unwatch);
    if (outcome.ok) {
      patience.answered(task.model, now() - began);
      return ok(outcome.value);
    }
    if (outcome.status !== undefined) patience.answered(task.model);
    // The request's own time ran out, as opposed to the engine's.
    if (task.signal.aborted || (timeout.aborted && left < ENGINE_MS)) return gone;
    if (lost.signal.aborted) return silent;
    // A server that says it is full is not sent the same at once.
    if (outcome.refusal) return no(outcome.refusal);
    return { ...no(refuse('engine_failed', undefined, outcome.detail)), retryable: outcome.retryable };
  }

  function hold<T>(request: SlotRequest, work: (span?: Span) => Promise<Result<T>>): Promise<Result<T>> {
    return new Promise((resolve) => {
      slots.run(request, {
        async begin() {
          const started = now();
          // A bug in one piece of work must not take the process along, nor its slot.
          const span = request.span?.child('engine', 'client');
          const answer = await work(span).catch((error: unknown) =>
            no(refuse('internal', undefined, bugDetail(error))),
          );
          span?.end({}, answer.ok ? undefined : answer.refusal.reason);
          return () => {
            if (answer.ok) onServed(now() - started, request.class);
            resolve(answer);
          };
        },
        giveUp: (why) => resolve(why === 'full' ? full : gone),
      });
    });
  }

  async function inferTwice(task: Task, queuedAt: number, span: Span | undefined): Promise<Answer> {
    if (patience.lostSince(queuedAt)) return silent;
    const answer = await attempt(task, span);
    return !answer.ok && answer.retryable ? attempt(task, span) : answer;
  }

  return {
    run(task) {
      const queuedAt = now();
      return hold(task, (span) => inferTwice(task, queuedAt, span));
    },
    hold,
    queued: slots.queued,
    ahead: slots.ahead,
    busy: slots.busy,
  };
}
