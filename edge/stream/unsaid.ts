import { limits } from '../../shared/limits.ts';
import type { SessionEvent } from './dialect.ts';

/** Follows which speech of a session no segment covers yet. Times are seconds of the session. */
export class Unsaid {
  /** Start of the newest such speech. */
  #speech: number | undefined;
  /** Everything before it was said. */
  #until = 0;

  note(event: SessionEvent): void {
    if (event.type === 'speech_started') this.#speech = event.at;
    else if (event.type === 'interim') this.#speech = event.start;
    else if (event.type === 'cleared') this.#speech = undefined;
    else if (event.type === 'segment') {
      this.settle(event.end);
      // An utterance that was cut at its greatest length goes on.
      if (event.ending === 'length') this.#speech = event.end;
    }
  }

  /** Everything before `time` was said. Speech in it without a segment was noise. */
  settle(time: number): void {
    this.#until = Math.max(this.#until, time);
    if (this.#speech !== undefined && this.#speech < this.#until) this.#speech = undefined;
  }

  /** Reports whether all words of `taken` seconds of sound were said: what follows them is the silence of a pause. */
  isOver(taken: number): boolean {
    const isQuiet = this.#speech === undefined && this.#until > 0;
    return isQuiet && (taken - this.#until) * 1_000 <= limits.streamTailMs.value;
  }
}
