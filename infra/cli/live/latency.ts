// Latency of words. Pure: the caller passes the times.
import { FRAME_SECONDS } from './audio.ts';

/** Words of one utterance in an event, as the end of each in seconds from the start of the stream. */
export interface ShownWords {
  /** Utterances are counted; an utterance's words come in order, and interims may change them. */
  readonly utterance: number;
  readonly wordEnds: readonly number[];
  readonly final: boolean;
}

export interface Measured {
  readonly kind: 'partial' | 'final';
  readonly milliseconds: number;
  /** End of the word, or of the last word of the utterance, in seconds of audio. */
  readonly at: number;
}

export interface WordClock {
  /** Frame `index` was handed to the connection. */
  sent(index: number, now: number): void;
  /**
   * Returns the latencies that an event completes. `partial` of a word: from sending the audio at its end to the first
   * event that shows as many words of its utterance. `final` of an utterance: from sending the audio at the end of its
   * last word to the final event. The event itself gives the end of each word.
   */
  shown(shown: ShownWords, now: number): Measured[];
}

/** Times of so many frames are kept: over a minute and a half. */
const KEPT = 1_024;

export function createWordClock(): WordClock {
  const times = new Float64Array(KEPT);
  let frames = 0;
  let utterance = -1;
  let words = 0;

  /** Returns `undefined` for audio that was not sent, or too long ago. */
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
