import type { Candidates } from './candidates.ts';
import { createLifts } from './lifts.ts';
import { type BeamParts, NO_PREFIX, type Prefixes } from './prefix.ts';

/** Writes down a prefix whose last word has ended. */
function writeEnded(into: Candidates, slot: number, finished: number, state: number): void {
  into.node[slot] = 0;
  into.letters[slot] = 0;
  into.state[slot] = state;
  into.finished[slot] = finished;
  into.bias[slot] = finished;
}

/**
 * Scores prefixes by lexicon and language model: words at their ends, and half words by what they may become.
 */
export function createMeanings(parts: BeamParts, tree: Prefixes) {
  const { wordBoundary, texts, unspaced, lexicon, model, settings } = parts;
  const lifts = createLifts(parts, tree);

  /** Scores the prefix with its current word ended; called once for each. */
  function close(prefix: number): void {
    if (tree.closed[prefix]) return;
    const node = tree.node[prefix] as number;
    const state = tree.state[prefix] as number;
    const known = lexicon ? lexicon.wordAt(node) : -1;
    const word = known >= 0 ? (lexicon?.words[known] ?? '') : '<unk>';
    const language = model ? settings.modelWeight * model.score(state, word) : 0;
    // A word that stops in the middle of the lexicon was not penalised on the way.
    const stopped = lexicon && known < 0 && node >= 0 ? settings.unknownWord : 0;
    const score = language + settings.wordBonus + stopped;
    const finished = tree.finished[prefix] as number;
    const spelled = node < 0 && lexicon ? (tree.bias[prefix] as number) - finished : 0;
    tree.closed[prefix] = 1;
    tree.closedFinished[prefix] = finished + score + spelled;
    tree.closedState[prefix] = model ? model.after(state, word) : 0;
  }

  /** Scores an unfinished word: one that has left the lexicon is penalised, more with every letter. */
  function promise(prefix: number, node: number): number {
    if (!lexicon) return 0;
    if (node >= 0) return model ? settings.modelWeight * lexicon.promise(node) : 0;
    if ((tree.node[prefix] as number) >= 0) return settings.unknownWord + settings.unknownLetter;
    return (tree.bias[prefix] as number) - (tree.finished[prefix] as number) + settings.unknownLetter;
  }

  /** Writes down the prefix with a token that is a word by itself. It needs no lexicon. */
  function addWord(prefix: number, token: number, into: Candidates, slot: number): void {
    const open = (tree.letters[prefix] as number) > 0;
    if (open) close(prefix);
    const state = (open ? tree.closedState[prefix] : tree.state[prefix]) as number;
    const word = texts[token] ?? '';
    // Without a language model nothing balances the bonus.
    const score = model ? settings.modelWeight * model.score(state, word) + settings.wordBonus : 0;
    const finished = ((open ? tree.closedFinished[prefix] : tree.finished[prefix]) as number) + score;
    writeEnded(into, slot, finished, model ? model.after(state, word) : 0);
    lifts?.followWord(prefix, token, into, slot);
  }

  return {
    /** The prefix that says nothing yet. */
    begin(token: number): number {
      const root = tree.add(NO_PREFIX, token);
      tree.node[root] = 0;
      tree.letters[root] = 0;
      tree.state[root] = model?.start ?? 0;
      tree.finished[root] = 0;
      tree.bias[root] = 0;
      tree.term[root] = 0;
      tree.lift[root] = 0;
      return root;
    },

    /** Writes down at `slot` what the prefix means with one token more. */
    extend(prefix: number, token: number, into: Candidates, slot: number): void {
      into.term[slot] = 0;
      into.lift[slot] = 0;
      if (token === wordBoundary) {
        close(prefix);
        writeEnded(into, slot, tree.closedFinished[prefix] as number, tree.closedState[prefix] as number);
        lifts?.followBoundary(prefix, into, slot);
        return;
      }
      if (unspaced[token]) {
        addWord(prefix, token, into, slot);
        return;
      }
      const before = tree.node[prefix] as number;
      const node = !lexicon ? 0 : before >= 0 ? lexicon.step(before, token) : -1;
      const finished = tree.finished[prefix] as number;
      into.node[slot] = node;
      into.letters[slot] = (tree.letters[prefix] as number) + 1;
      into.state[slot] = tree.state[prefix] as number;
      into.finished[slot] = finished;
      into.bias[slot] = finished + promise(prefix, node);
      lifts?.followLetter(prefix, token, into, slot);
    },

    /** Natural-log score of the words when the speaker has stopped here. */
    endScore(prefix: number): number {
      const open = (tree.letters[prefix] as number) > 0;
      if (open) close(prefix);
      const whole = open ? (lifts?.wholeLift(prefix) ?? 0) : 0;
      const finished = ((open ? tree.closedFinished[prefix] : tree.finished[prefix]) as number) + whole;
      const state = (open ? tree.closedState[prefix] : tree.state[prefix]) as number;
      return finished + (model ? settings.modelWeight * model.end(state) : 0);
    },
  };
}
