// Words of a text. Han, Kana, Thai, Lao, Khmer and Burmese are written without spaces between words: there each
// character counts as a word, as in the character error rate and in Whisper's word times for these languages.

import { UNSPACED_SCRIPTS } from '../scripts.ts';

/** Signs that Unicode gives no script: CJK punctuation, the long vowel mark, full-width punctuation. */
const SIGNS = String.raw`\u3001-\u3020\u3030-\u3035\u30FB\u30FC\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65\uFF70`;
const UNSPACED = `${UNSPACED_SCRIPTS}${SIGNS}`;

const begins = new RegExp(`^\\p{P}*[${UNSPACED}]`, 'u');
const ends = new RegExp(`[${UNSPACED}]\\p{P}*$`, 'u');
const has = new RegExp(`[${UNSPACED}]`, 'u');

/** Reports whether a token of a vocabulary is a word by itself. */
export const isUnspaced = (token: string): boolean => begins.test(token);

/** Returns what stands between two neighbours of a text: a space, unless both are of scripts without spaces. */
const gapBetween = (left: string, right: string) =>
  left === '' || right === '' || (ends.test(left) && begins.test(right)) ? '' : ' ';

/** Appends words to a text. */
export const appendWords = (text: string, next: string): string => `${text}${gapBetween(text, next)}${next}`;

/** Returns a word as a continuation of `before`, with the space that parts them. */
export const continueText = (before: string, next: string): string => `${gapBetween(before, next)}${next}`;

/** Joins words or texts; empty ones leave no space. */
export function joinWords(words: readonly string[]): string {
  let [text, last] = ['', ''];
  for (const word of words) {
    if (word === '') continue;
    text += continueText(last, word);
    last = word;
  }
  return text;
}

/** Characters with the opening signs before and the marks and signs behind, and what lies between such characters. */
const PIECE = new RegExp(
  `[\\p{Ps}\\p{Pi}]{0,3}[${UNSPACED}][^\\p{L}\\p{N}\\p{Ps}\\p{Pi}]*|.+?(?=[\\p{Ps}\\p{Pi}]{0,3}[${UNSPACED}]|$)`,
  'gsu',
);

/** Splits a text without white space into words: characters where the script has no spaces. */
export const splitWord = (word: string): readonly string[] => (has.test(word) ? (word.match(PIECE) ?? []) : [word]);

/** Returns the words of a text. */
export const wordsIn = (text: string): string[] => text.split(/\s+/).filter(Boolean).flatMap(splitWord);
