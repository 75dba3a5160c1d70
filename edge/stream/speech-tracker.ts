import type { SessionEvent } from '../protocol/live-protocol.ts';

/**
 * Sound after the last word of a completely served session: the longest turn-ending silence, 1.5 s, and a
 * second until it is acknowledged.
 */
export const STREAM_TAIL_MS = 3_000;

/** Tracks speech that no segment covers yet. Times are seconds of the session. */
export class SpeechTracker {
  /** Start of the newest such speech. */
  #speech: number | undefined;
  /** The client has every word before this time. */
  #committed = 0;

  track(event: SessionEvent): void {
    if (event.type === 'speech_started') this.#speech = event.at;
    else if (event.type === 'interim') this.#speech = event.start;
    else if (event.type === 'cleared') this.#speech = undefined;
    else if (event.type === 'segment') {
      this.commit(event.end);
      // The agent cut the utterance at its greatest length, and the utterance goes on.
      if (event.ending === 'length') this.#speech = event.end;
    }
  }

  /** Notes that the client has every word before `time`. Speech in it without a segment was noise. */
  commit(time: number): void {
    this.#committed = Math.max(this.#committed, time);
    if (this.#speech !== undefined && this.#speech < this.#committed) this.#speech = undefined;
  }

  /** Reports whether the client has all words of `seconds` of audio, so that only the silence of a pause is left. */
  isComplete(seconds: number): boolean {
    const isQuiet = this.#speech === undefined && this.#committed > 0;
    return isQuiet && (seconds - this.#committed) * 1_000 <= STREAM_TAIL_MS;
  }
}
