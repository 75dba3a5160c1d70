import { fp32Tensor, int32Tensor } from '../../../../shared/kserve/tensor.ts';
import { limits } from '../../../../shared/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import type { LiveModel } from '../desk.ts';
import { modelTensors, readScores } from '../recognise.ts';
import type { Scores } from '../segment.ts';
import type { Semaphore } from '../semaphore.ts';
import { type Clock, pause } from './clock.ts';
import type { Ends } from './ends.ts';
import { afterStall, pauseAfter, type StallLimit } from './stall.ts';
import type { StepOutcome, Steps } from './steps.ts';
import type { LiveUtterance, Window } from './utterance.ts';

/** Why a sequence was begun again. */
export type RebuildCause = 'stalled' | 'forgotten' | 'lost' | 'parked';

export interface SequenceParts {
  readonly live: LiveModel;
  /** Tokens of a row of the answer. */
  readonly width: number;
  readonly class: RequestClass;
  readonly steps: Steps;
  readonly ends: Ends;
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
 * The engine's half of one utterance: windows go out in order, one at a time, and come back as scores. The state that
 * the engine keeps between them may be lost at any time – it stalls (A8), restarts, forgets –, so a sequence is only a
 * copy of what the utterance's samples say: another one with another id is begun and sent the windows again. Whatever
 * happens, each sequence that was begun is ended.
 */
export function createSequence(utterance: LiveUtterance, parts: SequenceParts) {
  const { live, clock, signal, stall, onRebuild = () => {} } = parts;
  let current: { readonly id: number; next: number; begun: boolean } | undefined;
  let cause: RebuildCause | undefined;
  let failures = 0;
  /** Milliseconds that went by with steps that failed and with pauses behind them, since a new window was answered. */
  let lostMs = 0;
  let unpark = () => {};
  /** Gives a place among those who rebuild back; it does nothing without one. */
  let leave: (() => void) | undefined;

  /** Nobody goes on with it: it ends, unless it never began. */
  function abandon() {
    unpark();
    if (current?.begun)
      parts.ends.send({ model: live.model, id: current.id, inputs: inputsOf(new Float32Array(live.windowSamples)) });
    current = undefined;
  }

  /** An engine throws sequences away that wait too long, and some break over it. */
  function park() {
    unpark = clock.after(limits.sequenceParkMs.value, () => {
      abandon();
      cause = 'parked';
    });
  }

  /**
   * A step that stalls is given up only when there is room to rebuild. So a pause of the whole engine costs a few
   * sequences, and the others get their answers late.
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

  /** What a step that failed means for the sequence; a refusal when the engine is given up. */
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
    // Who has a place and cannot use it at once makes room; a stall was wait enough.
    if (why === 'stalled') return ok(undefined);
    rest();
    const milliseconds = pauseAfter(failures);
    lostMs += milliseconds;
    await pause(clock, milliseconds, signal);
    return ok(undefined);
  }

  /** The first sequence of an utterance needs no place among those who rebuild. */
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
    /** Nobody wants the utterance any more. */
    abandon,
  };
}
