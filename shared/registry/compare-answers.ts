// Compares two transcripts of the same audio by words: letters and digits only, in lower case, since spelling
// is not recognition. Scripts without spaces between words are compared by character.

import { UNSPACED_SCRIPTS } from '../scripts.ts';
import { MIRROR_WORDS_MAX } from './limits.ts';
import { countWordErrors } from './word-errors.ts';

const WORD = new RegExp(`[${UNSPACED_SCRIPTS}]|[[\\p{L}\\p{N}\\p{M}']--[${UNSPACED_SCRIPTS}]]+`, 'gv');

export const wordsOf = (text: string): string[] => text.normalize('NFKC').toLowerCase().match(WORD) ?? [];

export interface Compared {
  /** Words of the served transcript. */
  readonly words: number;
  /** Edit distance between the two, in words. */
  readonly errors: number;
}

/** Compares the first `MIRROR_WORDS_MAX` words of each. */
export function compareAnswers(served: string, other: string): Compared {
  const [reference, hypothesis] = [served, other].map((text) => wordsOf(text).slice(0, MIRROR_WORDS_MAX)) as [
    string[],
    string[],
  ];
  return { words: reference.length, errors: countWordErrors(reference, hypothesis) };
}
