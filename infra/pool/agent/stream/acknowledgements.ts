import { KiB } from '../../../../shared/bytes.ts';
import type { Clock } from './clock.ts';

/**
 * Shortest interval between position reports that the edge does not wait for: each costs the edge as much as
 * 100 ms of audio.
 */
export const STREAM_HEARD_MS = 2_000;
/**
 * Audio after which a position report is sent at once: an eighth of the window, so that a replay never stops.
 */
const STREAM_HEARD_BYTES = 64 * KiB;

/** Acknowledges received audio: at intervals, at once after much, and always the last byte. */
export function createAcknowledgements({ clock }: { readonly clock: Clock }, send: (position: number) => void) {
  let received = 0;
  let sent = 0;
  let sentAt = Number.NEGATIVE_INFINITY;
  let cancel: (() => void) | undefined;

  function acknowledge() {
    cancel?.();
    cancel = undefined;
    sent = received;
    sentAt = clock.now();
    send(received);
  }

  return {
    received(position: number) {
      received = position;
      const rest = sentAt + STREAM_HEARD_MS - clock.now();
      if (rest <= 0 || received - sent >= STREAM_HEARD_BYTES) acknowledge();
      else cancel ??= clock.after(rest, acknowledge);
    },
    stop: () => cancel?.(),
  };
}
