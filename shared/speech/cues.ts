import type { Segment, Word } from './transcript.ts';
import { continueText, joinWords, wordsIn } from './words.ts';

/** One subtitle on the screen. Times in seconds. */
export interface Cue {
  readonly start: number;
  readonly end: number;
  /** One line, or two lines separated by a line break. */
  readonly text: string;
}

/** Longest line and cue that people read in time (BBC and Netflix timed-text guidelines: 42 letters, 2 lines, 7 s). */
const LINE_CHARACTERS = 42;
const CUE_CHARACTERS = 2 * LINE_CHARACTERS;
const CUE_SECONDS = 7;
/** Letters that a full-width character counts for: Netflix's lines of Chinese have 16. */
const WIDE_LETTERS = 42 / 16;

const wide = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303F\u30FC\uFF01-\uFF60]/gu;

/** Length of a text in letters; full-width characters count for more. */
const lengthOf = (text: string) => text.length + (text.match(wide)?.length ?? 0) * (WIDE_LETTERS - 1);

const textOf = (words: readonly Word[]) => joinWords(words.map(({ word }) => word));

const fits = (words: readonly Word[]) => {
  const [first, last] = [words[0], words.at(-1)];
  return lengthOf(textOf(words)) <= CUE_CHARACTERS && (last?.end ?? 0) - (first?.start ?? 0) <= CUE_SECONDS;
};

/** Returns the number of words of the next cue: all that fit, or fewer, up to the longest pause near the end. */
function cut(words: readonly Word[]): number {
  let most = 1;
  while (most < words.length && fits(words.slice(0, most + 1))) most++;
  if (most === words.length) return most;
  const pause = (at: number) => (words[at]?.start ?? 0) - (words[at - 1]?.end ?? 0);
  let best = most;
  for (let at = most; at > most / 3; at--) if (pause(at) > pause(best)) best = at;
  return best;
}

/** Breaks a text longer than a line between the words nearest to its middle. */
function wrap(text: string): string {
  const length = lengthOf(text);
  if (length <= LINE_CHARACTERS) return text;
  const words = wordsIn(text);
  let [before, best, nearest] = [0, 0, length];
  for (const [at, word] of words.slice(0, -1).entries()) {
    before += lengthOf(continueText(words[at - 1] ?? '', word));
    const distance = Math.abs(before - length / 2);
    if (distance < nearest) [best, nearest] = [at + 1, distance];
  }
  return best === 0 ? text : `${joinWords(words.slice(0, best))}\n${joinWords(words.slice(best))}`;
}

/** Cuts segments into cues by their words. A segment without words stays one cue. */
export function toCues(segments: readonly Segment[]): Cue[] {
  return segments.flatMap(({ start, end, text, words }) => {
    if (words.length === 0 || fits(words)) return [{ start, end, text: wrap(text) }];
    const cues: Cue[] = [];
    for (let at = 0; at < words.length; ) {
      const part = words.slice(at, at + cut(words.slice(at)));
      cues.push({ start: part[0]?.start ?? start, end: part.at(-1)?.end ?? end, text: wrap(textOf(part)) });
      at += part.length;
    }
    return cues;
  });
}
