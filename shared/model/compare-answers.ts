// How far two transcripts of the same sound are apart, in words: letters and digits only, in small letters, since how a
// revision writes is not what it heard. Scripts that do not part words are compared by character.
import { limits } from '../limits.ts';
import { countWordErrors } from './word-errors.ts';

const UNPARTED = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`;
const WORD = new RegExp(`[${UNPARTED}]|[[\\p{L}\\p{N}\\p{M}']--[${UNPARTED}]]+`, 'gv');

export const wordsOf = (text: string): string[] => text.normalize('NFKC').toLowerCase().match(WORD) ?? [];

export interface Compared {
  /** Words of the one that was served. */
  readonly words: number;
  /** Least number of words to insert, delete or replace to make the other of it. */
  readonly errors: number;
}

/** Of the first `limits.mirrorWords` of each. */
export function compareAnswers(served: string, other: string): Compared {
  const [said, heard] = [served, other].map((text) => wordsOf(text).slice(0, limits.mirrorWords.value)) as [
    string[],
    string[],
  ];
  return { words: said.length, errors: countWordErrors(said, heard) };
}
