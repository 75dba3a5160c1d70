import { limits } from '../../../../shared/limits.ts';
import type { Clock } from './clock.ts';

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
      const rest = sentAt + limits.streamHeardMs.value - clock.now();
      if (rest <= 0 || received - sent >= limits.streamHeardBytes.value) acknowledge();
      else cancel ??= clock.after(rest, acknowledge);
    },
    stop: () => cancel?.(),
  };
}
