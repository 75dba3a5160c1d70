import { limits } from '../../shared/limits.ts';
import { type Due, dueAt, type Times } from '../../shared/stream/deadlines.ts';
import type { Alarm, Surroundings } from '../clock.ts';

/** Due only when it was due a moment ago, too: a busy thread hears late, and what was said waits behind the clock. */
const ofSilence: ReadonlySet<Due> = new Set(['agent_silent', 'gone', 'idle']);

/** Looks at the deadlines of a session, once in `limits.streamTickMs`. */
export class Watch {
  readonly #surroundings: Surroundings;
  #alarm: Alarm | undefined;
  #before: ReadonlySet<Due> = new Set();
  #over = false;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  /** Reads times with `look` and passes deadlines to `meet`, until `end`. Rejects with the error of either. */
  async begin(look: () => Times, meet: (due: Due, times: Times, now: number) => void): Promise<void> {
    while (!this.#over) {
      this.#alarm = this.#surroundings.after(limits.streamTickMs.value);
      await this.#alarm.rings;
      const now = this.#surroundings.now();
      const times = look();
      const due = dueAt(times, now);
      const before = this.#before;
      this.#before = new Set(due);
      for (const one of due) if (!this.#over && (!ofSilence.has(one) || before.has(one))) meet(one, times, now);
    }
  }

  end(): void {
    this.#over = true;
    this.#alarm?.cancel();
  }
}
