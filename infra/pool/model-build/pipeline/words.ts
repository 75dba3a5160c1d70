import { ok } from '../../../../shared/result.ts';
import { isUnspaced } from '../../../../shared/speech/words.ts';
import type { Flow } from '../archive/manifest.ts';
import { type BuildResult, problem } from '../problem.ts';
import { VOCABULARY_WORDS_MAX } from './options.ts';

const linesOf = (text: string): string[] => text.replace(/\r?\n$/, '').split(/\r?\n/);

/**
 * Checks a vocabulary: a token a line, as many as the network's rows, each once, blank and space where
 * configured.
 */
export function checkVocabulary(
  text: string,
  flow: Flow | undefined,
  settings: Readonly<Record<string, string>>,
): BuildResult<undefined> {
  const tokens = linesOf(text);
  const twice = tokens.find((token, at) => tokens.indexOf(token) !== at);
  if (twice !== undefined) return problem('artifact', `the vocabulary has "${twice}" twice`);
  const width = flow?.output.find(({ name }) => name === 'LOG_PROBS')?.dims.at(-1) ?? -1;
  if (width !== -1 && width !== tokens.length) {
    return problem('artifact', `the vocabulary has ${tokens.length} tokens and the network ${width}`);
  }
  for (const [name, token] of [
    ['blank', '<blank>'],
    ['word_boundary', '<space>'],
  ] as const) {
    const at = Number(settings[name] ?? tokens.indexOf(token));
    // Characters of scripts without spaces are words.
    if (at < 0 && tokens.some(isUnspaced)) continue;
    if (tokens[at] !== token)
      return problem('artifact', `${name}=${at}: token ${at} of the vocabulary is not ${token}`);
  }
  return ok(undefined);
}

/** Checks the size of a lexicon; more words do not help (M6). */
export function checkLexicon(text: string): BuildResult<undefined> {
  const words = linesOf(text).length;
  return words <= VOCABULARY_WORDS_MAX
    ? ok(undefined)
    : problem('bound', `the lexicon has ${words} words, over ${VOCABULARY_WORDS_MAX} (M6)`);
}
