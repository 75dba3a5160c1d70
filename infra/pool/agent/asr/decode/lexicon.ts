import type { LanguageModel } from './language-model.ts';

/** The words a decoder knows, as a tree over token numbers. Node 0 is the root. */
export interface Lexicon {
  readonly words: readonly string[];
  /** Node reached from `node` by `token`, or -1. */
  step(node: number, token: number): number;
  /** Number of the word that ends at `node`, or -1. */
  wordAt(node: number): number;
  /** Best natural-log unigram probability of any word at or below `node`: what a half-spoken word may still become. */
  promise(node: number): number;
}

/** Words with a letter that is not a token cannot be spelled and are left out. */
export function createLexicon(words: readonly string[], tokens: readonly string[], model?: LanguageModel): Lexicon {
  const width = tokens.length;
  const byLetter = new Map(tokens.map((token, index) => [token, index]));
  const next: number[][] = [[]];
  const ends: number[] = [-1];
  const promises: number[] = [Number.NEGATIVE_INFINITY];
  const kept: string[] = [];

  for (const word of words) {
    const spelled = [...word].map((letter) => byLetter.get(letter));
    if (spelled.length === 0 || spelled.includes(undefined)) continue;
    const chance = model ? model.unigram(word) : 0;
    let node = 0;
    promises[0] = Math.max(promises[0] ?? chance, chance);
    for (const token of spelled as number[]) {
      const row = next[node] as number[];
      let child = row[token];
      if (child === undefined) {
        child = next.length;
        row[token] = child;
        next.push([]);
        ends.push(-1);
        promises.push(Number.NEGATIVE_INFINITY);
      }
      node = child;
      promises[node] = Math.max(promises[node] as number, chance);
    }
    ends[node] = kept.length;
    kept.push(word);
  }

  const table = new Int32Array(next.length * width).fill(-1);
  next.forEach((row, node) => {
    row.forEach((child, token) => {
      table[node * width + token] = child;
    });
  });
  return {
    words: kept,
    step: (node, token) => table[node * width + token] ?? -1,
    wordAt: (node) => ends[node] ?? -1,
    promise: (node) => promises[node] ?? Number.NEGATIVE_INFINITY,
  };
}
