import type { DecoderAssets } from '../../../infra/pool/agent/asr/decode/decoder.ts';

export const tokens = ['<blank>', ' ', 'a', 'c', 'e', 's', 't', 'u'];

/** Bigrams over four words that sound alike. */
export const arpa = `\\data\\
ngram 1=7
ngram 2=3

\\1-grams:
-99\t<s>\t-0.3
-1.0\t</s>
-4.0\t<unk>
-1.0\tcat\t-0.3
-1.0\tsat\t-0.3
-1.2\tseat\t-0.3
-3.0\ttaes\t-0.3

\\2-grams:
-0.2\t<s> cat
-0.1\tcat sat
-0.3\tsat </s>

\\end\\
`;
export const plain: DecoderAssets = { tokens, blank: 0, wordBoundary: 1 };
export const spoken: DecoderAssets = { ...plain, lexicon: ['cat', 'sat', 'seat', 'taes'], languageModel: arpa };

/** Log probabilities of an utterance, one row of `tokens` for each frame. */
export interface Table {
  readonly table: Float32Array;
  readonly frames: number;
}

/** Each frame names its tokens and their shares, `_` being blank; the other tokens share the remainder. */
export function rows(...frames: Record<string, number>[]): Table {
  const table = new Float32Array(frames.length * tokens.length);
  frames.forEach((frame, at) => {
    const given = Object.values(frame).reduce((sum, share) => sum + share, 0);
    const rest = Math.max(1e-6, (1 - given) / (tokens.length - Object.keys(frame).length));
    tokens.forEach((token, column) => {
      const name = column === 0 ? '_' : token;
      table[at * tokens.length + column] = Math.log(frame[name] ?? rest);
    });
  });
  return { table, frames: frames.length };
}

/** One clear token in each frame. */
export const sure = (letters: string) => rows(...[...letters].map((letter) => ({ [letter]: 0.97 })));

/**
 * Words as an unsure network hears them: letters held for a while, blanks between, and up to `doubt` on another token
 * in `often` of the frames; `rest` goes to all the others.
 */
export function mumble(
  words: readonly string[],
  doubt: number,
  random: () => number,
  { rest = 0.01, often = 1 } = {},
): Table {
  const names = ['_', ...tokens.slice(1)];
  const frames: Record<string, number>[] = [];
  const say = (letter: string) => {
    const other = names[Math.floor(random() * names.length)] ?? '_';
    const share = random() < often ? random() * doubt : 0;
    const clear = 1 - rest;
    frames.push(other === letter ? { [letter]: clear } : { [letter]: clear - share, [other]: share + 1e-5 });
  };
  for (const word of words) {
    for (const letter of word) {
      const held = 1 + Math.floor(random() * 2);
      for (let frame = 0; frame < held; frame++) say(letter);
      if (random() < 0.4) say('_');
    }
    say(' ');
  }
  return rows(...frames);
}
