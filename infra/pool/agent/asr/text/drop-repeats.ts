import type { DecodedWord } from '../decode/decoder.ts';

/** Longest phrase that is searched for repetitions, words. */
const PHRASE_WORDS_MAX = 30;
/** A phrase of one or two words is a loop from this many words on; people do say "no, no, no". */
const LOOP_WORDS = 8;
/** Repetitions from which a longer phrase is a loop. */
const LOOP_TIMES = 3;

const plain = ({ word }: DecodedWord) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '') || word;

/** Times that the phrase of `size` words at `at` comes in direct succession. */
function timesAt(words: readonly string[], at: number, size: number): number {
  let times = 1;
  for (let next = at + size; next + size <= words.length; next += size, times++)
    for (let i = 0; i < size; i++) if (words[next + i] !== words[at + i]) return times;
  return times;
}

/**
 * Returns the words without what a decoder adds when it loops: a phrase in direct succession, three times or
 * over eight words, stays once. With measured times, a phrase that follows itself within no time is a loop the second
 * time already.
 */
export function dropRepeats(words: readonly DecodedWord[], hasTimes: boolean): DecodedWord[] {
  const plainWords = words.map(plain);
  const kept: DecodedWord[] = [];
  for (let at = 0; at < words.length; ) {
    const loop = loopAt(words, plainWords, at, hasTimes);
    kept.push(...words.slice(at, at + (loop?.size ?? 1)));
    at += loop ? loop.size * loop.times : 1;
  }
  return kept;
}

function loopAt(words: readonly DecodedWord[], plainWords: readonly string[], at: number, hasTimes: boolean) {
  for (let size = 1; size <= PHRASE_WORDS_MAX && at + 2 * size <= words.length; size++) {
    const times = timesAt(plainWords, at, size);
    if (times < 2) continue;
    const copies = words.slice(at + size, at + size * times);
    if (times >= LOOP_TIMES && (size > 2 || size * times >= LOOP_WORDS)) return { size, times };
    if (hasTimes && size > 2 && isInstant(copies)) return { size, times };
  }
  return undefined;
}

/** Time that the fastest speaker needs for a word, in frames of 1 ms. */
const WORD_MS_MIN = 60;

function isInstant(words: readonly DecodedWord[]): boolean {
  const [first, last] = [words[0], words.at(-1)];
  if (first === undefined || last === undefined) return false;
  // By starts: the end of the last word may be a guess.
  return last.startFrame - first.startFrame < WORD_MS_MIN * (words.length - 1);
}
