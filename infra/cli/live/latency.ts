// How long words take. Pure: times are handed in.
import { FRAME_SECONDS } from './audio.ts';

/** Words of one utterance as an event tells them: where each ends, seconds from the first sample of the stream. */
export interface Shown {
  /** Utterances are counted; an utterance's words come in order, and interims may change them. */
  readonly utterance: number;
  readonly wordEnds: readonly number[];
  readonly final: boolean;
}

export interface Measured {
  readonly kind: 'partial' | 'final';
  readonly milliseconds: number;
  /** Where in the audio the word, or the utterance's last one, ends, seconds. */
  readonly at: number;
}

export interface WordClock {
  /** Frame `index` was handed to the connection. */
  sent(index: number, now: number): void;
  /**
   * What an event measures. A word's `partial` is the time from the moment when the audio up to its end had been sent
   * to the first event, interim or final, that shows as many words of its utterance. An utterance's `final` is the time
   * from the end of its last word to the final event. Where a word ends is what the event itself says.
   */
  shown(shown: Shown, now: number): Measured[];
}

/** Times of so many frames are kept: over a minute and a half. */
const KEPT = 1_024;

export function createWordClock(): WordClock {
  const times = new Float64Array(KEPT);
  let frames = 0;
  let utterance = -1;
  let words = 0;

  /** `undefined` when that was too long ago, or is said to end in the future. */
  function sentAt(seconds: number): number | undefined {
    const index = Math.max(0, Math.ceil(seconds / FRAME_SECONDS - 1e-6) - 1);
    return index < frames && index >= frames - KEPT ? times[index % KEPT] : undefined;
  }

  return {
    sent(index, now) {
      times[index % KEPT] = now;
      frames = index + 1;
    },
    shown(event, now) {
      if (event.utterance !== utterance) words = 0;
      utterance = event.utterance;
      const measured: Measured[] = [];
      const measure = (kind: Measured['kind'], at: number) => {
        const since = sentAt(at);
        if (since !== undefined) measured.push({ kind, milliseconds: now - since, at });
      };
      for (const end of event.wordEnds.slice(words)) measure('partial', end);
      words = Math.max(words, event.wordEnds.length);
      const last = event.wordEnds.at(-1);
      if (event.final && last !== undefined) measure('final', last);
      return measured;
    },
  };
}
