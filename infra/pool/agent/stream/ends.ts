import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { limits } from '../../../../shared/limits.ts';
import type { Engine } from '../engine/engine.ts';
import { type Clock, pause } from './clock.ts';

/** End of an abandoned sequence. */
export interface SequenceEnd {
  readonly model: string;
  readonly id: number;
  /** Any window: an engine takes no request without one, and what it answers is not looked at. */
  readonly inputs: readonly Tensor[];
}

const never = new AbortController().signal;

/**
 * Tells the engine that sequences are over, whatever became of their streams: one that is never ended keeps its slot
 * until it is idle for too long, and Triton's clean-up of those has crashed servers. Tried a few times, never waited for.
 */
export function createSequenceEnds(engine: Pick<Engine, 'infer'>, clock: Clock) {
  const waiting: SequenceEnd[] = [];
  let busy = 0;
  let onIdle = () => {};

  async function send({ model, id, inputs }: SequenceEnd): Promise<void> {
    for (let attempt = 0; attempt < limits.sequenceEndTries.value; attempt++) {
      const cancel = new AbortController();
      const late = clock.after(limits.sequenceIdleMs.value, () => cancel.abort());
      const given = new Promise<'late'>((resolve) => {
        cancel.signal.addEventListener('abort', () => resolve('late'), { once: true });
      });
      const call = engine.infer({
        model,
        inputs,
        outputs: ['FRAMES'],
        priority: 1,
        timeoutMicros: limits.sequenceIdleMs.value * 1_000,
        signal: cancel.signal,
        sequence: { id, start: false, end: true },
      });
      const outcome = await Promise.race([call, given]);
      late();
      // Any answer will do: one that knows of no such sequence has ended it already.
      if (outcome !== 'late' && (outcome.ok || !outcome.retryable)) return;
      await pause(clock, limits.streamPauseMs.value * 2 ** attempt, never);
    }
  }

  function pump() {
    while (busy < limits.sequenceEndsAtOnce.value) {
      const next = waiting.shift();
      if (!next) break;
      busy++;
      void send(next).then(() => {
        busy--;
        pump();
      });
    }
    if (busy === 0) onIdle();
  }

  return {
    send(end: SequenceEnd) {
      if (waiting.length >= limits.sequenceEnds.value) waiting.shift();
      waiting.push(end);
      pump();
    },
    /** Resolves when all are told, or after so many milliseconds. */
    settle(milliseconds: number): Promise<void> {
      if (busy === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const late = clock.after(milliseconds, resolve);
        onIdle = () => {
          late();
          resolve();
        };
      });
    },
    size: () => busy + waiting.length,
  };
}

export type SequenceEnds = ReturnType<typeof createSequenceEnds>;
