import { type DecodedWord, type DecoderAssets, defaults } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import { createLanguageModel } from '../../../infra/pool/agent/asr/decode/language-model.ts';
import { align } from './align.ts';

const add = (a: number, b: number) => {
  const [high, low] = a > b ? [a, b] : [b, a];
  return high === Number.NEGATIVE_INFINITY ? high : high + Math.log1p(Math.exp(low - high));
};

/** Scores words by their spelling alone. */
function scoreWords(words: readonly string[], { lexicon, languageModel }: DecoderAssets): number {
  const { modelWeight, wordBonus, unknownWord, unknownLetter } = defaults;
  const model = languageModel === undefined ? undefined : createLanguageModel(languageModel);
  let state = model?.start ?? 0;
  let score = 0;
  for (const word of words) {
    const known = !lexicon || lexicon.includes(word);
    const said = lexicon?.includes(word) ? word : '<unk>';
    score += wordBonus + (model ? modelWeight * model.score(state, said) : 0);
    if (!known) {
      let shared = word.length;
      while (!lexicon.some((entry) => entry.startsWith(word.slice(0, shared)))) shared--;
      score += unknownWord + unknownLetter * (word.length - shared);
    }
    state = model ? model.after(state, said) : 0;
  }
  return score + (model ? modelWeight * model.end(state) : 0);
}

/** A text, its natural-log score and when its words were said. */
export interface Reading {
  readonly text: string;
  readonly score: number;
  words(): DecodedWord[];
}

/**
 * Every text that the table allows, each with the sum over all of its paths: what the beam search approximates, the best first.
 * Exact, and only for few frames with few tokens that count.
 */
export function decodeExhaustively(table: Float32Array, frames: number, assets: DecoderAssets): Reading[] {
  const { tokens, blank, wordBoundary = -1 } = assets;
  const width = tokens.length;
  let texts = new Map([['', { text: [] as number[], blank: 0, sounding: Number.NEGATIVE_INFINITY }]]);
  for (let frame = 0; frame < frames; frame++) {
    const after: typeof texts = new Map();
    const at = (text: number[]) => {
      const key = text.join();
      const known = after.get(key) ?? { text, blank: Number.NEGATIVE_INFINITY, sounding: Number.NEGATIVE_INFINITY };
      after.set(key, known);
      return known;
    };
    for (const { text, blank: parted, sounding } of texts.values()) {
      const last = text.at(-1) ?? blank;
      const total = add(parted, sounding);
      for (let token = 0; token < width; token++) {
        const chance = table[frame * width + token] as number;
        const here = at(text);
        if (token === blank) here.blank = add(here.blank, total + chance);
        else if (token === last) here.sounding = add(here.sounding, sounding + chance);
        if (token === blank || chance <= defaults.tokenFloor) continue;
        // A boundary with no word before it is silence.
        const idle = token === wordBoundary && (last === blank || last === wordBoundary);
        if (idle && token !== last) here.blank = add(here.blank, total + chance);
        if (idle) continue;
        const longer = at([...text, token]);
        longer.sounding = add(longer.sounding, (token === last ? parted : total) + chance);
      }
    }
    texts = after;
  }

  const wordsOf = (text: readonly number[]) =>
    text
      .map((token) => (token === wordBoundary ? ' ' : tokens[token]))
      .join('')
      .split(' ')
      .filter((word) => word !== '');
  const readings = [...texts.values()].map(({ text, blank: parted, sounding }) => ({
    text: wordsOf(text).join(' '),
    score: add(parted, sounding) + scoreWords(wordsOf(text), assets),
    words: () => timeWords(table, frames, text, assets),
  }));
  return readings.sort((a, b) => b.score - a.score);
}

function timeWords(table: Float32Array, frames: number, text: number[], assets: DecoderAssets): DecodedWord[] {
  const { tokens, blank, wordBoundary = -1 } = assets;
  const spans = align(table, frames, tokens.length, text, blank, wordBoundary);
  const words: DecodedWord[] = [];
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf(wordBoundary, from);
    const to = end === -1 ? text.length : end;
    const spoken = spans?.slice(from, to) ?? [];
    const mean = spoken.reduce((sum, { logProb }) => sum + logProb, 0) / spoken.length;
    words.push({
      word: text
        .slice(from, to)
        .map((token) => tokens[token])
        .join(''),
      startFrame: spoken[0]?.firstFrame ?? -1,
      endFrame: (spoken.at(-1)?.lastFrame ?? -2) + 1,
      confidence: Math.exp(mean),
    });
    from = to + 1;
  }
  return words;
}
