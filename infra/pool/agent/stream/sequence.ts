import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import { inputsOf, modelTensors, readScores } from '../asr/recognise.ts';
import type { Scores } from '../asr/segment.ts';
import type { Semaphore } from '../engine/semaphore.ts';
import type { LiveModel } from '../models/live-model.ts';
import { type Clock, pause } from './clock.ts';
import type { SequenceEnds } from './ends.ts';
import { afterStall, pauseAfter, type StallLimit } from './stall.ts';
import type { StepOutcome, Steps } from './steps.ts';
import { STREAM_PATIENCE_MS } from './steps.ts';
import type { LiveUtterance, Window } from './utterance.ts';

/** Wait for sound after which a sequence is ended, before its engine drops it, and replayed later. */
export const SEQUENCE_PARK_MS = 700;

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

/**
 * The engine's half of one utterance: windows go out in order, one at a time, and come back as scores. The engine may lose
 * its state at any time (it stalls (A8), restarts or forgets); then a sequence with another id gets the windows again.
 * Every sequence that was begun is ended.
 */
export class Sequence {
  readonly #utterance: LiveUtterance;
  readonly #parts: SequenceParts;
  #current: { readonly id: number; next: number; begun: boolean } | undefined;
  #cause: RebuildCause | undefined;
  #failures = 0;
  /** Time lost to failed steps and the pauses after them since the last answered window, ms. */
  #lostMs = 0;
  #unpark = () => {};
  /** Leaves the semaphore of rebuilds, where this sequence has entered it. */
  #leave: (() => void) | undefined;

  constructor(utterance: LiveUtterance, parts: SequenceParts) {
    this.#utterance = utterance;
    this.#parts = parts;
  }

  /** Scores of window `number`: windows in order, and no other after the last. Refuses with `engine_failed`. */
  score(number: number, window: Window): Promise<Result<Scores>> {
    this.#unpark();
    return this.#send(number, window).finally(() => this.#rest());
  }

  /**
   * Abandons the sequence of an utterance that has ended or was discarded. The engine gets its END, unless it never
   * began.
   */
  abandon() {
    this.#unpark();
    const { live, ends } = this.#parts;
    if (this.#current?.begun) {
      const silence = new Float32Array(live.windowSamples);
      ends.send({ model: live.model, id: this.#current.id, inputs: inputsOf(silence) });
    }
    this.#current = undefined;
  }

  /** Ends the sequence before the engine discards it for idling: clean-up of idle sequences has crashed servers. */
  #park() {
    this.#unpark = this.#parts.clock.after(SEQUENCE_PARK_MS, () => {
      this.abandon();
      this.#cause = 'parked';
    });
  }

  /**
   * Gives a stalled step up only when there is room to rebuild. A pause of the whole engine then costs a few sequences,
   * and the others get their answers late.
   */
  async #mayGiveUp(answered: AbortSignal): Promise<boolean> {
    const granted = this.#leave ?? (await this.#parts.rebuilds.enter(answered));
    if (answered.aborted) {
      if (!this.#leave) granted?.();
      return false;
    }
    this.#leave = granted;
    return true;
  }

  #rest() {
    this.#leave?.();
    this.#leave = undefined;
  }

  async #step(window: Window): Promise<StepOutcome> {
    if (!this.#current) return { ok: false, why: 'gone', detail: 'no sequence' };
    const start = !this.#current.begun;
    const sentAt = this.#parts.clock.now();
    const outcome = await this.#parts.steps.run({
      model: this.#parts.live.model,
      inputs: inputsOf(window.samples),
      outputs: modelTensors.outputs,
      class: this.#parts.class,
      sequence: { id: this.#current.id, start, end: window.last },
      stallMs: this.#parts.stall.limit.ms,
      mayGiveUp: (answered) => this.#mayGiveUp(answered),
      signal: this.#parts.signal,
    });
    if (outcome.ok || outcome.why !== 'unsent') this.#current.begun = true;
    if (outcome.ok) {
      this.#current.next++;
      this.#parts.onStep?.();
    } else this.#lostMs += this.#parts.clock.now() - sentAt;
    return outcome;
  }

  /** Reacts to a failed step. Refuses when the engine is given up. */
  async #judge({ why, detail }: Exclude<StepOutcome, { ok: true }>): Promise<Result<undefined>> {
    if (why !== 'unsent') this.abandon();
    if (this.#parts.signal.aborted || why === 'gone') return over;
    if (why === 'wrong') return failed(detail);
    if (why === 'stalled') {
      this.#parts.stall.limit = afterStall(this.#parts.stall.limit);
      this.#parts.onStall?.();
    }
    if (why !== 'unsent') this.#cause = why;
    this.#failures++;
    if (this.#lostMs > STREAM_PATIENCE_MS) return failed(detail);
    // A sequence that pauses leaves its place to others. A stall was wait enough.
    if (why === 'stalled') return ok(undefined);
    this.#rest();
    const milliseconds = pauseAfter(this.#failures);
    this.#lostMs += milliseconds;
    await pause(this.#parts.clock, milliseconds, this.#parts.signal);
    return ok(undefined);
  }

  /** Begins a sequence; all but the first of an utterance wait for room to rebuild. */
  async #begin(): Promise<void> {
    if (this.#cause) {
      this.#leave ??= await this.#parts.rebuilds.enter(this.#parts.signal);
      this.#parts.onRebuild?.(this.#cause);
      this.#cause = undefined;
    }
    this.#current = { id: this.#parts.newId(), next: 0, begun: false };
  }

  async #send(number: number, window: Window): Promise<Result<Scores>> {
    for (;;) {
      if (this.#parts.signal.aborted) return over;
      if (!this.#current) await this.#begin();
      if (!this.#current) continue;
      const at = this.#current.next;
      const again = at < number ? this.#utterance.window(at, this.#parts.live) : window;
      if (!again) throw new Error('a window of an utterance is gone');
      const outcome = await this.#step(again);
      if (!outcome.ok) {
        const judged = await this.#judge(outcome);
        if (!judged.ok) return judged;
      } else if (at === number) {
        this.#failures = 0;
        this.#lostMs = 0;
        if (window.last) this.#current = undefined;
        else this.#park();
        return readScores(outcome.value, this.#parts.width);
      }
    }
  }
}
