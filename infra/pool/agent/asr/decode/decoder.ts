import type { Term } from '../../../../../shared/speech/terms.ts';
import { isUnspaced, joinWords } from '../../../../../shared/speech/words.ts';
import { createBeam, type DecodedToken } from './beam.ts';
import { createLanguageModel } from './language-model.ts';
import { createLexicon } from './lexicon.ts';
import { type BeamParts, type BeamSettings, beginsWord } from './prefix.ts';
import { createTermTree, NO_TOKEN, type TermTree } from './terms.ts';

/** A word as frames of the network; `endFrame` is the first frame behind it. */
export interface DecodedWord {
  readonly word: string;
  readonly startFrame: number;
  readonly endFrame: number;
  /** Geometric mean of the network's posteriors of its letters, 0 to 1. */
  readonly confidence: number;
}

export interface Decoded {
  readonly text: string;
  readonly words: readonly DecodedWord[];
  /** Mean over the words, 0 to 1; 0 when there are none. */
  readonly confidence: number;
}

/** State of an utterance that goes on. */
export interface DecodedSoFar extends Decoded {
  /** How many leading words no later sound can change: every hypothesis begins with them, and has ended them. */
  readonly stable: number;
  /** How many leading words are spoken to their end in the best hypothesis; the one behind them may be half a word. */
  readonly whole: number;
}

/** One utterance being decoded; sound may arrive piece by piece. */
export interface Decoding {
  /** Adds `frames` rows of natural-log probabilities, one column per token. */
  push(logProbs: Float32Array, frames: number): void;
  /**
   * Returns the current state. Costs as much as the words behind the stable ones, not as the whole utterance.
   */
  partial(): DecodedSoFar;
  finish(): Decoded;
}

export interface WordDecoder {
  /** Tokens of the vocabulary: columns that a row of log probabilities must have. */
  readonly width: number;
  /** `terms` are raised, where the vocabulary can spell them. A narrow decoding keeps `NARROW_BEAM` hypotheses. */
  begin(terms?: readonly Term[], isNarrow?: boolean): Decoding;
}

export interface DecoderAssets {
  /**
   * Text of each token by number; those of `blank` and `wordBoundary` do not matter. A token of a script without spaces is
   * a word by itself.
   */
  readonly tokens: readonly string[];
  readonly blank: number;
  /** Token between words: by default a space or `|`. A vocabulary of characters may have none. */
  readonly wordBoundary?: number | undefined;
  /** Known words; without them any spelling goes. */
  readonly lexicon?: readonly string[];
  /** ARPA text of the word language model. */
  readonly languageModel?: string;
}

/**
 * Set once by hand, not tuned on the test set; the word error rates in `test/bench/results/wer.json` are with these.
 * A model whose letters are less sure than the reference model's wants more weight on the language model.
 */
export const defaults: BeamSettings = {
  beam: 24,
  giveUp: 16,
  tokenFloor: Math.log(1e-4),
  modelWeight: 0.6,
  wordBonus: 1,
  unknownWord: -6,
  unknownLetter: -0.5,
};

/** Returns the token between words, `NO_TOKEN` where a vocabulary has none. */
export const boundaryOf = (tokens: readonly string[]): number =>
  [' ', '|'].map((token) => tokens.indexOf(token)).find((at) => at !== NO_TOKEN) ?? NO_TOKEN;

/** Hypotheses of a narrow decoding (A20): a third of the time of `defaults`, measured on the reference clips. */
export const NARROW_BEAM = 8;

export function createDecoder(assets: DecoderAssets, settings: Partial<BeamSettings> = {}): WordDecoder {
  const { tokens, blank, wordBoundary = boundaryOf(assets.tokens) } = assets;
  const unspaced = tokens.map(isUnspaced);
  const model = assets.languageModel === undefined ? undefined : createLanguageModel(assets.languageModel);
  const lexicon = assets.lexicon === undefined ? undefined : createLexicon(assets.lexicon, tokens, model);
  const parts = {
    width: tokens.length,
    blank,
    wordBoundary,
    texts: tokens,
    unspaced,
    ...(lexicon && { lexicon }),
    ...(model && { model }),
    settings: { ...defaults, ...settings },
  };

  const letters = new Map(tokens.map((token, index) => [token, index]));
  /** Trees by their list, since each utterance of a request begins with the same one. */
  const trees = new WeakMap<readonly Term[], TermTree>();
  function treeOf(terms: readonly Term[]): TermTree {
    const tree = trees.get(terms) ?? createTermTree(terms, letters, wordBoundary);
    trees.set(terms, tree);
    return tree;
  }
  return {
    width: tokens.length,
    begin(terms, isNarrow = false) {
      const stable: DecodedWord[] = [];
      const kept = isNarrow ? Math.min(NARROW_BEAM, parts.settings.beam) : parts.settings.beam;
      const begun = { ...parts, settings: { ...parts.settings, beam: kept } };
      const beam = createBeam({ ...begun, terms: terms?.length ? treeOf(terms) : undefined }, (decoded) =>
        stable.push(...toWords(decoded, parts, stable.at(-1)?.endFrame)),
      );
      const read = (ended: boolean): DecodedSoFar => {
        const best = beam.best(ended);
        const words = [...stable, ...toWords(best, parts, stable.at(-1)?.endFrame)];
        const last = best.at(-1)?.token ?? wordBoundary;
        const open = last !== wordBoundary && !unspaced[last];
        const sum = words.reduce((total, { confidence }) => total + confidence, 0);
        return {
          text: joinWords(words.map(({ word }) => word)),
          words,
          confidence: words.length > 0 ? sum / words.length : 0,
          stable: stable.length,
          whole: words.length - (open ? 1 : 0),
        };
      };
      return {
        push: beam.push,
        partial: () => read(false),
        finish() {
          const { text, words, confidence } = read(true);
          return { text, words, confidence };
        },
      };
    },
  };
}

/** The words of the tokens; none begins before `from`. */
function toWords(decoded: readonly DecodedToken[], parts: BeamParts, from = 0): DecodedWord[] {
  const words: DecodedWord[] = [];
  let earliest = from;
  let word = '';
  let letters = 0;
  let logProbs = 0;
  let firstFrame = 0;
  let lastFrame = 0;
  const end = () => {
    if (letters > 0) {
      const startFrame = Math.max(firstFrame, earliest);
      earliest = Math.max(lastFrame, startFrame) + 1;
      words.push({ word, startFrame, endFrame: earliest, confidence: Math.min(1, Math.exp(logProbs / letters)) });
    }
    word = '';
    letters = 0;
    logProbs = 0;
  };
  for (const [at, { token, trail }] of decoded.entries()) {
    if (beginsWord(parts, decoded[at - 1]?.token ?? NO_TOKEN, token)) end();
    if (token === parts.wordBoundary) continue;
    if (letters === 0) firstFrame = trail.firstFrame;
    lastFrame = trail.lastFrame;
    word += parts.texts[token] ?? '';
    logProbs += trail.logProb;
    letters++;
  }
  end();
  return words;
}
