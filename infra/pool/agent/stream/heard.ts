import { limits } from '../../../../shared/limits.ts';
import type { Clock } from './clock.ts';

/** Says how far was heard: seldom, but at once after much, and always about the last of it. */
export function createHeardReports({ clock }: { readonly clock: Clock }, say: (position: number) => void) {
  let heard = 0;
  let told = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  let cancel: (() => void) | undefined;

  function tell() {
    cancel?.();
    cancel = undefined;
    told = heard;
    toldAt = clock.now();
    say(heard);
  }

  return {
    heard(position: number) {
      heard = position;
      const rest = toldAt + limits.streamHeardMs.value - clock.now();
      if (rest <= 0 || heard - told >= limits.streamHeardBytes.value) tell();
      else cancel ??= clock.after(rest, tell);
    },
    stop: () => cancel?.(),
  };
}
