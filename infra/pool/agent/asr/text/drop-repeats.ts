import type { DecodedWord } from '../decode/decoder.ts';

/** Longest phrase that is searched for repetitions, words. */
const PHRASE_WORDS_MAX = 30;
/** Shortest run of a phrase of one or two words that is a loop, words; people do say "no, no, no". */
const LOOP_WORDS = 8;
/** Repetitions from which a phrase without measured times is a loop. */
const LOOP_TIMES = 3;
/** Shortest such run, words: card numbers have at most 19 digits (ISO/IEC 7812), phone numbers 15 (E.164). */
const UNTIMED_LOOP_WORDS = 20;
/** Time that the fastest speaker needs for a word, in frames of 1 ms. */
const WORD_MS_MIN = 60;

const plain = ({ word }: DecodedWord) => word.toLowerCase().replace(/[^\p{L}\p{N}\p{M}]/gu, '') || word;

/** Times that the phrase of `size` words at `at` comes in direct succession. */
function timesAt(words: readonly string[], at: number, size: number): number {
  let times = 1;
  for (let next = at + size; next + size <= words.length; next += size, times++)
    for (let i = 0; i < size; i++) if (words[next + i] !== words[at + i]) return times;
  return times;
}

/**
 * Returns the words without the copies of a phrase that a decoder adds when it loops. A copy is dropped when it follows
 * faster than speech. Without measured times, words share the time of the utterance, and a phrase that comes three
 * times and fills 20 words stays once.
 */
export function dropRepeats(words: readonly DecodedWord[], hasTimes: boolean): DecodedWord[] {
  const plainWords = words.map(plain);
  const kept: DecodedWord[] = [];
  for (let at = 0; at < words.length; ) {
    const loop = loopAt(words, plainWords, at, hasTimes);
    kept.push(...(loop?.kept ?? words.slice(at, at + 1)));
    at += loop?.length ?? 1;
  }
  return kept;
}

/** Returns the length of a loop that begins at `at`, and the words of it that were spoken. */
function loopAt(words: readonly DecodedWord[], plainWords: readonly string[], at: number, hasTimes: boolean) {
  for (let size = 1; size <= PHRASE_WORDS_MAX && at + 2 * size <= words.length; size++) {
    const times = timesAt(plainWords, at, size);
    if (times < 2) continue;
    const length = size * times;
    const first = words.slice(at, at + size);
    if (!hasTimes && times >= LOOP_TIMES && length >= UNTIMED_LOOP_WORDS) return { length, kept: first };
    // Times of single words jitter: a run of a short phrase is judged as a whole.
    const isShort = size <= 2;
    if (isShort && (length < LOOP_WORDS || !isFast(words, at + size, at + length))) continue;
    const copies = Array.from({ length: times - 1 }, (_, i) => at + size * (i + 1));
    const spoken = copies.filter((from) => !isFast(words, isShort ? from - size : from, from + size));
    if (spoken.length < copies.length)
      return { length, kept: [...first, ...spoken.flatMap((from) => words.slice(from, from + size))] };
  }
  return undefined;
}

/** Reports whether words `from` to `to` begin in less time than speech takes. */
function isFast(words: readonly DecodedWord[], from: number, to: number): boolean {
  // By starts: the end of the last word may be a guess.
  const start = (at: number) => words[at]?.startFrame ?? 0;
  return start(to - 1) - start(from) < WORD_MS_MIN * (to - from - 1);
}
