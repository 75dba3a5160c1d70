import { align } from './align.ts';
import { type BeamSettings, createBeam } from './beam.ts';
import { createLanguageModel } from './language-model.ts';
import { createLexicon } from './lexicon.ts';

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

/** One utterance being decoded; sound may arrive piece by piece. */
export interface Decoding {
  /** Adds `frames` rows of natural-log probabilities, one column per token. */
  push(logProbs: Float32Array, frames: number): void;
  /** What it looks like so far; later sound may change it. */
  partial(): Decoded;
  finish(): Decoded;
}

export interface WordDecoder {
  /** Tokens of the vocabulary: columns that a row of log probabilities must have. */
  readonly width: number;
  begin(): Decoding;
}

export interface DecoderAssets {
  /** Text of each token by number; those of `blank` and `wordBoundary` do not matter. */
  readonly tokens: readonly string[];
  readonly blank: number;
  readonly wordBoundary: number;
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
  tokenFloor: Math.log(1e-4),
  modelWeight: 0.6,
  wordBonus: 1,
  unknownWord: -6,
  unknownLetter: -0.5,
};

export function createDecoder(assets: DecoderAssets, settings: Partial<BeamSettings> = {}): WordDecoder {
  const { tokens, blank, wordBoundary } = assets;
  const model = assets.languageModel === undefined ? undefined : createLanguageModel(assets.languageModel);
  const lexicon = assets.lexicon === undefined ? undefined : createLexicon(assets.lexicon, tokens, model);
  const parts = {
    width: tokens.length,
    blank,
    wordBoundary,
    ...(lexicon && { lexicon }),
    ...(model && { model }),
    settings: { ...defaults, ...settings },
  };

  return {
    width: tokens.length,
    begin() {
      const beam = createBeam(parts);
      const rows: Float32Array[] = [];
      let frames = 0;
      const read = (ended: boolean): Decoded => {
        const best = beam.best(ended);
        const table = new Float32Array(frames * tokens.length);
        let at = 0;
        for (const row of rows) {
          table.set(row, at);
          at += row.length;
        }
        return toWords(best, table, frames, assets);
      };
      return {
        push(logProbs, count) {
          rows.push(logProbs.slice(0, count * tokens.length));
          frames += count;
          beam.push(logProbs, count);
        },
        partial: () => read(false),
        finish: () => read(true),
      };
    },
  };
}

function toWords(best: readonly number[], table: Float32Array, frames: number, assets: DecoderAssets): Decoded {
  const { tokens, blank, wordBoundary } = assets;
  const spans = align(table, frames, tokens.length, best, blank);
  const words: DecodedWord[] = [];
  let letters: number[] = [];
  const end = () => {
    const spoken = letters.map((at) => spans?.[at]);
    const [first, last] = [spoken[0], spoken.at(-1)];
    if (letters.length > 0 && first && last) {
      const mean = spoken.reduce((sum, span) => sum + (span?.logProb ?? 0), 0) / spoken.length;
      words.push({
        word: letters.map((at) => tokens[best[at] ?? blank] ?? '').join(''),
        startFrame: first.firstFrame,
        endFrame: last.lastFrame + 1,
        confidence: Math.min(1, Math.exp(mean)),
      });
    }
    letters = [];
  };
  best.forEach((token, at) => {
    if (token === wordBoundary) end();
    else letters.push(at);
  });
  end();
  const sum = words.reduce((total, { confidence }) => total + confidence, 0);
  return {
    text: words.map(({ word }) => word).join(' '),
    words,
    confidence: words.length > 0 ? sum / words.length : 0,
  };
}
