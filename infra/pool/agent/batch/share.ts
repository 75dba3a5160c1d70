import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import type { Dispatcher } from '../dispatch.ts';
import type { Place } from '../slots.ts';

/**
 * The engine as batch work sees it: at most `most` of its slots at once, so that whoever waits for an answer finds one
 * free, and is let in first anyway. Others wait outside the agent's queue, which is for those who are in a hurry.
 */
export function createShare(dispatcher: Dispatcher, most: number): Pick<Dispatcher, 'run' | 'hold'> {
  let busy = 0;
  const waiting: (() => void)[] = [];

  /** Whether a place was found before nobody wanted it any more. */
  function enter(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (busy < most) {
      busy++;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const go = () => {
        signal.removeEventListener('abort', giveUp);
        resolve(true);
      };
      const giveUp = () => {
        waiting.splice(waiting.indexOf(go), 1);
        resolve(false);
      };
      waiting.push(go);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The place goes to the next one, or is free. */
  function leave() {
    const next = waiting.shift();
    if (next) next();
    else busy--;
  }

  async function within<T>(place: Place, work: () => Promise<Result<T>>): Promise<Result<T>> {
    if (!(await enter(place.signal))) return no(refuse('deadline_passed', undefined, 'given up while queued'));
    try {
      return await work();
    } finally {
      leave();
    }
  }

  return {
    run: (task) => within(task, () => dispatcher.run(task)),
    hold: (place, work) => within(place, () => dispatcher.hold(place, work)),
  };
}
