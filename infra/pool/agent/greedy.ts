/** A word as frames of the network; `endFrame` is the first frame behind it. */
export interface DecodedWord {
  readonly word: string;
  readonly startFrame: number;
  readonly endFrame: number;
  /** 0 to 1. */
  readonly confidence: number;
}

export interface Decoded {
  readonly text: string;
  readonly words: readonly DecodedWord[];
  readonly confidence: number;
}

/** One utterance being decoded. */
export interface Decoding {
  /** Adds `frames` rows of natural-log probabilities, one column per token. */
  push(logProbs: Float32Array, frames: number): void;
  finish(): Decoded;
}

/** Turns log probabilities into words. */
export interface WordDecoder {
  begin(): Decoding;
}

export interface GreedyAssets {
  /** Text of each token by index; those of `blank` and `wordBoundary` do not matter. */
  readonly tokens: readonly string[];
  readonly blank: number;
  readonly wordBoundary: number;
}

/**
 * The best token of each frame, repeats and blanks removed (Graves et al. 2006, best path decoding): what is left for
 * models that bring neither lexicon nor language model.
 */
export function createGreedyDecoder({ tokens, blank, wordBoundary }: GreedyAssets): WordDecoder {
  return {
    begin() {
      const words: DecodedWord[] = [];
      let letters: { text: string; frame: number; logProb: number }[] = [];
      let previous = blank;
      let frame = 0;

      function endWord() {
        const [first] = letters;
        const last = letters.at(-1);
        if (first && last) {
          const mean = letters.reduce((sum, { logProb }) => sum + logProb, 0) / letters.length;
          const word = letters.map(({ text }) => text).join('');
          words.push({ word, startFrame: first.frame, endFrame: last.frame + 1, confidence: Math.exp(mean) });
        }
        letters = [];
      }

      return {
        push(logProbs, frames) {
          for (let row = 0; row < frames; row++, frame++) {
            const scores = logProbs.subarray(row * tokens.length, (row + 1) * tokens.length);
            const best = scores.indexOf(Math.max(...scores));
            if (best !== previous && best === wordBoundary) endWord();
            else if (best !== previous && best !== blank) {
              letters.push({ text: tokens[best] ?? '', frame, logProb: scores[best] ?? 0 });
            }
            previous = best;
          }
        },
        finish() {
          endWord();
          const mean = words.reduce((sum, { confidence }) => sum + confidence, 0) / (words.length || 1);
          return { text: words.map(({ word }) => word).join(' '), words, confidence: words.length ? mean : 0 };
        },
      };
    },
  };
}
