import type { Term } from '../../../../../shared/speech/terms.ts';
import { isUnspaced } from '../../../../../shared/speech/words.ts';

/** Stands for the number of a token that is not there. */
export const NO_TOKEN = -1;

/** Natural-log bonus of one token of a term with boost 1. */
export const TOKEN_BONUS = 1;
/**
 * Natural-log bonus of a whole term with a boost above 1. Less than what the beam gives hypotheses up at: one
 * within a term must not displace those that say what follows.
 */
const BOOSTED_TERM_BONUS = 12;

/** The terms of a request, as a tree over token numbers. Node 0 is the root. */
export interface TermTree {
  /** Node reached from `node` by `token`, or -1. */
  step(node: number, token: number): number;
  /** A term ends at this node. */
  ends(node: number): boolean;
  /** Natural-log bonus of the token that leads to this node. */
  bonus(node: number): number;
}

/** Tokens of a model by their text. */
export type Letters = ReadonlyMap<string, number>;

/**
 * Returns the tokens of a term, its words parted by `wordBoundary` where there is one; `undefined` where a letter is no
 * token. Other signs part words, but for an apostrophe that is no token. Characters of scripts without spaces end words
 * themselves.
 */
export function spell(text: string, letters: Letters, wordBoundary: number): number[] | undefined {
  const tokens: number[] = [];
  /** A boundary here would say nothing. */
  let ended = true;
  for (const sign of text.normalize('NFC')) {
    const forms = [sign, sign.toLowerCase(), sign.toUpperCase(), sign.normalize('NFD').toLowerCase().charAt(0)];
    const found = sign.trim() === '' ? undefined : forms.find((form) => letters.has(form));
    if (found !== undefined) {
      tokens.push(letters.get(found) as number);
      ended = isUnspaced(sign);
    } else if (/[\p{L}\p{N}]/u.test(sign)) return undefined;
    else if (!/['’]/.test(sign) && !ended) {
      if (wordBoundary !== NO_TOKEN) tokens.push(wordBoundary);
      ended = true;
    }
  }
  return tokens.at(-1) === wordBoundary ? tokens.slice(0, -1) : tokens;
}

/** Returns the tree of the terms that can be spelled. */
export function createTermTree(terms: readonly Term[], letters: Letters, wordBoundary: number): TermTree {
  const next: Map<number, number>[] = [new Map()];
  const bonuses = [0];
  const ends = new Set<number>();
  for (const { text, boost = 1 } of terms) {
    const spelled = spell(text, letters, wordBoundary);
    if (!spelled || spelled.length === 0) continue;
    const most = Math.max(1, BOOSTED_TERM_BONUS / (spelled.length * TOKEN_BONUS));
    const bonus = Math.min(boost, most) * TOKEN_BONUS;
    let node = 0;
    for (const token of spelled) {
      const row = next[node] as Map<number, number>;
      const child = row.get(token) ?? next.push(new Map()) - 1;
      row.set(token, child);
      bonuses[child] = Math.max(bonuses[child] ?? Number.NEGATIVE_INFINITY, bonus);
      node = child;
    }
    ends.add(node);
  }
  return {
    step: (node, token) => next[node]?.get(token) ?? -1,
    ends: (node) => ends.has(node),
    bonus: (node) => bonuses[node] ?? 0,
  };
}
