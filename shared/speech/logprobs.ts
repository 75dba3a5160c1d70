import { z } from 'zod';
import type { Word } from './transcript.ts';
import { continueText } from './words.ts';

/** OpenAI's log probability of a token. */
export const logprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.number().int()) });
export type Logprob = z.infer<typeof logprob>;

/** Stands for the logarithm of 0, which JSON cannot hold. */
const CERTAINLY_NOT = -100;

/**
 * Renders words as tokens that continue the text `before`: a word is the smallest unit with a posterior of the decoder.
 */
export const logprobsOf = (words: readonly Pick<Word, 'word' | 'confidence'>[], before: string): Logprob[] =>
  words.map(({ word, confidence }, index) => {
    const token = continueText(words[index - 1]?.word ?? before, word);
    const value = Math.max(CERTAINLY_NOT, Math.log(confidence));
    return { token, logprob: value, bytes: [...new TextEncoder().encode(token)] };
  });
