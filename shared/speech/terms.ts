import { z } from 'zod';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { isUnspaced, wordsIn } from './words.ts';

/** Terms of a request: the length of Deepgram's longest lists. */
export const TERMS_MAX = 200;
/** Characters of one term: a name of five words. */
export const TERM_CHARACTERS = 64;
/** Characters of all terms of a request: 200 names of usual length. Streams buffer them with each change of options. */
export const TERMS_CHARACTERS = 4_096;
/** Largest factor of a term, in both directions. */
const BOOST_MAX = 10;

/** A word or phrase that a request raises in recognition; a negative boost lowers it. */
const term = z.object({
  text: z
    .string()
    .refine((text) => [...text].length <= TERM_CHARACTERS, `must be at most ${TERM_CHARACTERS} characters a term`)
    // JSON Schema counts code points, too; zod's own bound counts UTF-16 units.
    .meta({ maxLength: TERM_CHARACTERS }),
  boost: z.number().min(-BOOST_MAX).max(BOOST_MAX).optional(),
});
export type Term = z.infer<typeof term>;

const sumRule = `must be at most ${TERMS_CHARACTERS} characters together`;
const countRule = `must be at most ${TERMS_MAX} terms`;

export const termList = z
  .array(term)
  .max(TERMS_MAX, countRule)
  .refine((terms) => terms.reduce((sum, { text }) => sum + text.length, 0) <= TERMS_CHARACTERS, sumRule);

/** Terms as plain texts. */
export const termTexts = z
  .array(term.shape.text)
  .max(TERMS_MAX, countRule)
  .refine((texts) => texts.join('').length <= TERMS_CHARACTERS, sumRule);

/** Returns the terms of a list without empty ones. Refuses one beyond the bounds with `field_invalid`. */
export function readTerms(field: string, terms: readonly Term[]): Result<Term[]> {
  const read = termList.safeParse(terms.filter(({ text }) => text.trim() !== ''));
  if (read.success) return ok(read.data);
  return no(refuse('field_invalid', { field, rule: read.error.issues[0]?.message ?? 'is not understood' }));
}

/** Element of Deepgram's `keywords`: a word and, behind a colon, a boost of at most `BOOST_MAX` in both directions. */
export const KEYWORD = /^([^:]*)(?::(-?(?:10(?:\.0{1,6})?|\d(?:\.\d{1,6})?)))?$/;

/** Reads elements of `keywords`. Refuses another boost with `field_invalid`. */
export function readKeywords(keywords: readonly string[]): Result<Term[]> {
  const terms: Term[] = [];
  for (const keyword of keywords) {
    const [whole, text = '', boost] = KEYWORD.exec(keyword) ?? [];
    if (whole === undefined) {
      const rule = `must be a word and, behind a colon, a boost from -${BOOST_MAX} to ${BOOST_MAX}`;
      return no(refuse('field_invalid', { field: 'keywords', rule }));
    }
    terms.push({ text, ...(boost !== undefined && { boost: Number(boost) }) });
  }
  return ok(terms);
}

/** Words of a term in a prompt, and characters where a script has no spaces; longer pieces are sentences. */
const PROMPT_TERM_WORDS = 4;
const PROMPT_TERM_CHARACTERS = 8;

const isTerm = (piece: string) =>
  piece.split(/\s+/).length <= PROMPT_TERM_WORDS && wordsIn(piece).filter(isUnspaced).length <= PROMPT_TERM_CHARACTERS;

/** Returns the terms of OpenAI's `prompt`, which is free text: its short pieces between commas, semicolons and lines. */
function termsOfPrompt(prompt: string): Term[] {
  const pieces = prompt.split(/[,;\n，、；。]/).map((piece) => piece.trim().replace(/[.!?:！？：]+$/, ''));
  return pieces
    .filter((piece) => piece !== '' && piece.length <= TERM_CHARACTERS)
    .filter(isTerm)
    .map((text) => ({ text }));
}

/** Words that a request names: terms for models that spell, a text for models that take one. */
export interface Bias {
  readonly terms: readonly Term[];
  readonly prompt: string;
}

/**
 * Returns the bias of a request with a prompt, terms or both, and `undefined` without. Terms come first; those of the
 * prompt follow as far as the bounds allow.
 */
export function biasOf(prompt: string | undefined, terms: readonly Term[] = []): Bias | undefined {
  if (!prompt && terms.length === 0) return undefined;
  const all: Term[] = [];
  let characters = 0;
  for (const one of [...terms, ...termsOfPrompt(prompt ?? '')]) {
    characters += one.text.length;
    if (all.length >= TERMS_MAX || characters > TERMS_CHARACTERS) break;
    all.push(one);
  }
  return { terms: all, prompt: prompt || terms.map(({ text }) => text).join(', ') };
}
