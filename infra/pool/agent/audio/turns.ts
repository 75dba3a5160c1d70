import { setImmediate } from 'node:timers/promises';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import { TURN_S } from '../settings/limits.ts';

/**
 * Passes decoded sound on in pieces and yields to the event loop after each `TURN_S` of it. A few
 * bytes of a compressed file stand for hours, and heartbeats, keepalives and other requests run on the same
 * thread. Rejects once `signal` has aborted.
 */
export function createTurns(signal?: AbortSignal) {
  /** Seconds of sound handed on since the last turn. */
  let spent = 0;
  return async function* share({ rate, channels }: SoundBlock): AsyncGenerator<SoundBlock> {
    const length = channels[0]?.length ?? 0;
    for (let at = 0; at < length; ) {
      const end = Math.min(length, at + Math.max(1, Math.floor((TURN_S - spent) * rate)));
      yield { rate, channels: channels.map((samples) => samples.subarray(at, end)) };
      spent += (end - at) / rate;
      at = end;
      // Half a sample of tolerance: sums of fractions do not meet a bound exactly.
      if (spent * rate < TURN_S * rate - 0.5) continue;
      spent = 0;
      await setImmediate();
      signal?.throwIfAborted();
    }
  };
}
