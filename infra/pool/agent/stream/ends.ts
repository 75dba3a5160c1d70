import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import type { Engine } from '../engine/engine.ts';
import { SEQUENCE_IDLE_MS } from '../settings/limits.ts';
import { type Clock, pause } from './clock.ts';
import { SEQUENCE_ENDS_CONCURRENT_MAX, STREAM_PAUSE_MS } from './limits.ts';

/** Ends of sequences that wait to be sent to the engine; with more it is gone anyway. */
const SEQUENCE_ENDS_MAX = 4_096;
/** Tries of sending the end of a sequence to a silent engine; then its idle time ends it. */
const SEQUENCE_END_TRIES_MAX = 3;

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
    for (let attempt = 0; attempt < SEQUENCE_END_TRIES_MAX; attempt++) {
      const cancel = new AbortController();
      const late = clock.after(SEQUENCE_IDLE_MS, () => cancel.abort());
      const given = new Promise<'late'>((resolve) => {
        cancel.signal.addEventListener('abort', () => resolve('late'), { once: true });
      });
      const call = engine.infer({
        model,
        inputs,
        outputs: ['FRAMES'],
        priority: 1,
        timeoutMicros: SEQUENCE_IDLE_MS * 1_000,
        signal: cancel.signal,
        sequence: { id, start: false, end: true },
      });
      const outcome = await Promise.race([call, given]);
      late();
      // Any answer will do: one that knows of no such sequence has ended it already.
      if (outcome !== 'late' && (outcome.ok || !outcome.retryable)) return;
      await pause(clock, STREAM_PAUSE_MS * 2 ** attempt, never);
    }
  }

  function pump() {
    while (busy < SEQUENCE_ENDS_CONCURRENT_MAX) {
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
      if (waiting.length >= SEQUENCE_ENDS_MAX) waiting.shift();
      waiting.push(end);
      pump();
    },
    /** Resolves when all were notified, or after so many milliseconds. */
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
