import { adjust, noFeedback, type Observation, windowsOf } from './feedback.ts';
import type { Windows } from './windows.ts';

/** Interval between two steps of the feedback. */
const FEEDBACK_MS = 1_000;

/** Windows that follow the load of a queue (A7). It has no timer: `windows` takes the step that is due. */
export function createWindowFeedback(now: () => number, observe: () => Pick<Observation, 'depth' | 'gpu'>) {
  let state = noFeedback;
  let since = now();
  let arrived = 0;
  return {
    /** Counts an arrival. */
    count(): void {
      arrived++;
    },
    windows(): Windows {
      const elapsed = now() - since;
      if (elapsed >= FEEDBACK_MS) {
        state = adjust(state, { ...observe(), requestsPerSecond: (arrived * 1_000) / elapsed });
        since += elapsed;
        arrived = 0;
      }
      return windowsOf(state);
    },
  };
}
