import type { Candidates } from './candidates.ts';
import type { BeamParts, Prefixes } from './prefix.ts';

/** Natural-log probability that a word of a term has at least: about that of a common noun. */
const TERM_LOG = Math.log(1e-4);

/**
 * Raises hypotheses that say terms of the request; `undefined` without terms. A prefix within a term has a lift: a bonus
 * for each token, and what makes its words no less likely than `TERM_LOG`, in the lexicon or not. The lift becomes part of
 * the score when the term ends with a word, and is taken back when the prefix leaves the term.
 */
export function createLifts({ wordBoundary, model, terms, settings }: BeamParts, tree: Prefixes) {
  if (!terms) return undefined;
  const termScore = model ? settings.modelWeight * TERM_LOG : 0;

  function makeUp(node: number, score: number, least = termScore): number {
    return terms && terms.bonus(node) > 0 ? Math.max(0, least - score) : 0;
  }

  /** Lift of the prefix without what makes up for the score of its current word. */
  function bareLift(prefix: number, node: number): number {
    if (node <= 0) return 0;
    const score = (tree.bias[prefix] as number) - (tree.finished[prefix] as number);
    const made = (tree.letters[prefix] as number) > 0 ? makeUp(node, score) : 0;
    return (tree.lift[prefix] as number) - made;
  }

  /** Lift of the prefix when its word ends, after `close`. */
  function closedLift(prefix: number, node: number): number {
    const score = (tree.closedFinished[prefix] as number) - (tree.finished[prefix] as number);
    return bareLift(prefix, node) + makeUp(node, score, termScore + settings.wordBonus);
  }

  return {
    /** Follows the terms by one letter; `into` has the scores without them. */
    followLetter(prefix: number, token: number, into: Candidates, slot: number): void {
      let before = tree.term[prefix] as number;
      let node = before < 0 ? -1 : terms.step(before, token);
      // A phrase that broke off between two words; the second may begin another.
      if (node < 0 && before > 0 && tree.letters[prefix] === 0) [before, node] = [0, terms.step(0, token)];
      into.term[slot] = node;
      if (node < 0) return;
      const score = (into.bias[slot] as number) - (into.finished[slot] as number);
      into.lift[slot] = bareLift(prefix, before) + terms.bonus(node) + makeUp(node, score);
    },

    /**
     * Follows the terms by a token that is a word by itself, after `close` of a word before it; `into` has the
     * scores without them. A term may begin and end at any of these tokens.
     */
    followWord(prefix: number, token: number, into: Candidates, slot: number): void {
      const before = tree.term[prefix] as number;
      const open = (tree.letters[prefix] as number) > 0;
      const former = (open ? tree.closedFinished[prefix] : tree.finished[prefix]) as number;
      const score = (into.finished[slot] as number) - former;
      const kept = open && terms.ends(before) ? closedLift(prefix, before) : 0;
      const onward = before > 0 ? terms.step(before, token) : -1;
      const node = onward > 0 ? onward : terms.step(0, token);
      const carried = onward <= 0 || kept > 0 ? 0 : open ? closedLift(prefix, before) : bareLift(prefix, before);
      const lift = node > 0 ? carried + terms.bonus(node) + makeUp(node, score, termScore + settings.wordBonus) : 0;
      const earned = kept + (terms.ends(node) ? lift : 0);
      into.term[slot] = Math.max(0, node);
      into.finished[slot] = (into.finished[slot] as number) + earned;
      into.bias[slot] = into.finished[slot] as number;
      into.lift[slot] = terms.ends(node) ? 0 : lift;
    },

    /** Follows the terms by the end of a word, after `close`. */
    followBoundary(prefix: number, into: Candidates, slot: number): void {
      const node = tree.term[prefix] as number;
      if (node <= 0) return;
      const next = terms.step(node, wordBoundary);
      if (next < 0 && !terms.ends(node)) return;
      const lift = closedLift(prefix, node);
      into.term[slot] = Math.max(0, next);
      if (!terms.ends(node)) {
        into.lift[slot] = lift;
        return;
      }
      into.finished[slot] = (into.finished[slot] as number) + lift;
      into.bias[slot] = into.finished[slot] as number;
    },

    /** Lift of a term that ends with the prefix, after `close`. */
    wholeLift(prefix: number): number {
      const node = tree.term[prefix] as number;
      return terms.ends(node) ? closedLift(prefix, node) : 0;
    },
  };
}
