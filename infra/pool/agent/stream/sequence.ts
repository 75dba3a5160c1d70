import { fp32Tensor, int32Tensor } from '../../../../shared/kserve/tensor.ts';
import { limits } from '../../../../shared/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import type { LiveModel } from '../live-model.ts';
import { modelTensors, readScores } from '../recognise.ts';
import type { Scores } from '../segment.ts';
import type { Semaphore } from '../semaphore.ts';
import { type Clock, pause } from './clock.ts';
import type { SequenceEnds } from './ends.ts';
import { afterStall, pauseAfter, type StallLimit } from './stall.ts';
import type { StepOutcome, Steps } from './steps.ts';
import type { LiveUtterance, Window } from './utterance.ts';

/** Cause of a rebuild. */
export type RebuildCause = 'stalled' | 'forgotten' | 'lost' | 'parked';

export interface SequenceParts {
  readonly live: LiveModel;
  /** Tokens of a row of the answer. */
  readonly width: number;
  readonly class: RequestClass;
  readonly steps: Steps;
  readonly ends: SequenceEnds;
  /** Limits the sequences that are sent again at once. */
  readonly rebuilds: Pick<Semaphore, 'enter'>;
  readonly clock: Clock;
  readonly newId: () => number;
  readonly signal: AbortSignal;
  /** Shared by the utterances of a stream. */
  readonly stall: { limit: StallLimit };
  readonly onStep?: () => void;
  readonly onStall?: () => void;
  readonly onRebuild?: (cause: RebuildCause) => void;
}

const failed = (detail: string) => no(refuse('engine_failed', undefined, detail));

const over = no(refuse('pool_lost', undefined, 'stream is over'));

const inputsOf = (samples: Float32Array) => [
  fp32Tensor('AUDIO', samples, [1, samples.length]),
  int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1]),
];

/**
 * The engine's half of one utterance: windows go out in order, one at a time, and come back as scores. The engine may lose
 * its state at any time (it stalls (A8), restarts or forgets); then a sequence with another id gets the windows again.
 * Every sequence that was begun is ended.
 */
export function createSequence(utterance: LiveUtterance, parts: SequenceParts) {
  const { live, clock, signal, stall, onRebuild = () => {} } = parts;
  let current: { readonly id: number; next: number; begun: boolean } | undefined;
  let cause: RebuildCause | undefined;
  let failures = 0;
  /** Milliseconds that went by with steps that failed and with pauses behind them, since a new window was answered. */
  let lostMs = 0;
  let unpark = () => {};
  /** Leaves the semaphore of rebuilds, where this sequence has entered it. */
  let leave: (() => void) | undefined;

  /** Gives the current sequence up. The engine gets its END, unless it never began. */
  function abandon() {
    unpark();
    if (current?.begun)
      parts.ends.send({ model: live.model, id: current.id, inputs: inputsOf(new Float32Array(live.windowSamples)) });
    current = undefined;
  }

  /** Ends the sequence before the engine discards it for idling: clean-up of idle sequences has crashed servers. */
  function park() {
    unpark = clock.after(limits.sequenceParkMs.value, () => {
      abandon();
      cause = 'parked';
    });
  }

  /**
   * Gives a stalled step up only when there is room to rebuild. A pause of the whole engine then costs a few sequences,
   * and the others get their answers late.
   */
  async function mayGiveUp(answered: AbortSignal): Promise<boolean> {
    const granted = leave ?? (await parts.rebuilds.enter(answered));
    if (answered.aborted) {
      if (!leave) granted?.();
      return false;
    }
    leave = granted;
    return true;
  }

  function rest() {
    leave?.();
    leave = undefined;
  }

  async function step(window: Window): Promise<StepOutcome> {
    if (!current) return { ok: false, why: 'gone', detail: 'no sequence' };
    const start = !current.begun;
    const asked = clock.now();
    const outcome = await parts.steps.run({
      model: live.model,
      inputs: inputsOf(window.samples),
      outputs: modelTensors.outputs,
      class: parts.class,
      sequence: { id: current.id, start, end: window.last },
      stallMs: stall.limit.ms,
      mayGiveUp,
      signal,
    });
    if (outcome.ok || outcome.why !== 'unsent') current.begun = true;
    if (outcome.ok) {
      current.next++;
      parts.onStep?.();
    } else lostMs += clock.now() - asked;
    return outcome;
  }

  /** Reacts to a failed step. Refuses when the engine is given up. */
  async function judge({ why, detail }: Exclude<StepOutcome, { ok: true }>): Promise<Result<undefined>> {
    if (why !== 'unsent') abandon();
    if (signal.aborted || why === 'gone') return over;
    if (why === 'wrong') return failed(detail);
    if (why === 'stalled') {
      stall.limit = afterStall(stall.limit);
      parts.onStall?.();
    }
    if (why !== 'unsent') cause = why;
    failures++;
    if (lostMs > limits.streamPatienceMs.value) return failed(detail);
    // A sequence that pauses leaves its place to others. A stall was wait enough.
    if (why === 'stalled') return ok(undefined);
    rest();
    const milliseconds = pauseAfter(failures);
    lostMs += milliseconds;
    await pause(clock, milliseconds, signal);
    return ok(undefined);
  }

  /** Begins a sequence; all but the first of an utterance wait for room to rebuild. */
  async function begin(): Promise<void> {
    if (cause) {
      leave ??= await parts.rebuilds.enter(signal);
      onRebuild(cause);
      cause = undefined;
    }
    current = { id: parts.newId(), next: 0, begun: false };
  }

  async function send(number: number, window: Window): Promise<Result<Scores>> {
    for (;;) {
      if (signal.aborted) return over;
      if (!current) await begin();
      if (!current) continue;
      const at = current.next;
      const again = at < number ? utterance.window(at, live) : window;
      if (!again) throw new Error('a window of an utterance is gone');
      const outcome = await step(again);
      if (!outcome.ok) {
        const judged = await judge(outcome);
        if (!judged.ok) return judged;
      } else if (at === number) {
        failures = 0;
        lostMs = 0;
        if (window.last) current = undefined;
        else park();
        return readScores(outcome.value, parts.width);
      }
    }
  }

  return {
    /** Scores of window `number`: windows in order, and no other after the last. Refuses with `engine_failed`. */
    score(number: number, window: Window): Promise<Result<Scores>> {
      unpark();
      return send(number, window).finally(rest);
    },
    /** Ends the sequence of an utterance that has ended or was discarded. */
    abandon,
  };
}
