import { readBytes, readFp32, type Tensor } from '../../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { splitWord } from '../../../../../shared/speech/words.ts';
import type { DecodedWord } from '../decode/decoder.ts';
import { dropRepeats } from './drop-repeats.ts';
import { type TokenTexts, wordsOfTokens } from './token-texts.ts';

/** Outputs that a model may have beside `TEXT` or `TOKENS`. */
export const textOutputs = {
  TEXT: ['WORD_TIMES', 'WORD_CONFIDENCE'],
  TOKENS: ['TOKEN_TIMES', 'TOKEN_LOG_PROBS'],
} as const;
export type TextOutput = keyof typeof textOutputs;

/** Words of one utterance. Their frames are milliseconds from its start. */
export interface HeardText {
  readonly words: readonly DecodedWord[];
  /** Mean natural log probability of a token; 0 where the model gives none. */
  readonly logProbability: number;
}

/** Reads the answers of a model whose output is text. */
export interface TextReader {
  /** Names of the outputs that it reads: an answer has the first, and may lack the others. */
  readonly outputs: readonly string[];
  /** Refuses with `engine_failed` what is no text, or has times or confidence that are not finite. */
  read(outputs: ReadonlyMap<string, Tensor>, seconds: number): Result<HeardText>;
}

const failed = (detail: string) => no(refuse('engine_failed', undefined, `engine answer: ${detail}`));

/** Word before its times are known; times in seconds. */
interface Spelled {
  readonly word: string;
  readonly start?: number;
  readonly end?: number;
  readonly confidence: number;
}

/** `present`: outputs that the model has; `tokens`: texts of its tokens, where its output is `TOKENS`. */
export function createTextReader(present: readonly string[], tokens?: TokenTexts): TextReader {
  const kind: TextOutput = tokens ? 'TOKENS' : 'TEXT';
  const outputs = [kind, ...textOutputs[kind].filter((name) => present.includes(name))];
  const read = tokens ? (given: Given) => readTokens(given, tokens) : readText;
  return {
    outputs,
    read(answer, seconds) {
      if (!answer.has(kind)) return failed(`no ${kind}`);
      const found = read((name) => answer.get(name));
      if (!found.ok) return found;
      const { words, logProbability } = found.value;
      const [times, shares] = textOutputs[kind];
      if (!words.every(({ start = 0, end = 0 }) => Number.isFinite(start + end))) return failed(`${times} not finite`);
      if (![logProbability, ...words.map(({ confidence }) => confidence)].every(Number.isFinite))
        return failed(`${shares} not finite`);
      const placed = placeInTime(words, seconds);
      const hasTimes = words.every(({ start }) => start !== undefined);
      return ok({ words: dropRepeats(placed, hasTimes), logProbability: Math.min(0, logProbability) });
    },
  };
}

type Given = (name: string) => Tensor | undefined;
type Spelling = Result<{ readonly words: Spelled[]; readonly logProbability: number }>;

/** Returns the numbers of an optional output, `undefined` where there are not `count` of them. */
function numbersOf(tensor: Tensor | undefined, count: number): Float32Array | undefined {
  if (!tensor) return undefined;
  const read = readFp32(tensor);
  return read.ok && read.value.length >= count ? read.value : undefined;
}

/**
 * Reads a text, its times and its confidences. The model counts words between white space, or characters too where a
 * script has no spaces: then each character of a word takes the same share of its time.
 */
function readText(given: Given): Spelling {
  const [text, times, confidence] = ['TEXT', 'WORD_TIMES', 'WORD_CONFIDENCE'].map(given);
  const read = text && readBytes(text);
  if (!read?.ok) return failed('TEXT is no text');
  const parts = new TextDecoder().decode(read.value[0]).split(/\s+/).filter(Boolean).map(splitWord);
  const words = parts.flatMap((own, part) =>
    own.map((word, i) => ({ word, part, from: i / own.length, to: (i + 1) / own.length })),
  );
  const spans = numbersOf(times, 2 * words.length);
  const whole = spans ? undefined : numbersOf(times, 2 * parts.length);
  const shares = numbersOf(confidence, words.length);
  const wholeShares = shares ? undefined : numbersOf(confidence, parts.length);
  if ((times && !spans && !whole) || (confidence && !shares && !wholeShares))
    return failed(`not ${parts.length} times or confidences`);
  const spelled = words.map(({ word, part, from, to }, i) => {
    const [begin = 0, end = 0] = whole?.subarray(2 * part, 2 * part + 2) ?? spans?.subarray(2 * i, 2 * i + 2) ?? [];
    const at = (share: number) => (whole ? begin + (end - begin) * share : undefined);
    return {
      word,
      ...(times && { start: at(from) ?? begin, end: at(to) ?? end }),
      confidence: shares?.[i] ?? wholeShares?.[part] ?? 1,
    };
  });
  return ok({ words: spelled, logProbability: 0 });
}

function readIds({ datatype, bytes }: Tensor): number[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (datatype === 'INT32') return Array.from({ length: bytes.length / 4 }, (_, i) => view.getInt32(4 * i, true));
  // The low half: a vocabulary has no 2^31 tokens.
  if (datatype === 'INT64') return Array.from({ length: bytes.length / 8 }, (_, i) => view.getInt32(8 * i, true));
  return undefined;
}

function readTokens(given: Given, texts: TokenTexts): Spelling {
  const [tokens, times, logProbs] = ['TOKENS', 'TOKEN_TIMES', 'TOKEN_LOG_PROBS'].map(given);
  const ids = tokens && readIds(tokens);
  if (!ids) return failed('TOKENS is no list of numbers');
  if (ids.some((id) => id < 0 || id >= texts.length)) return failed(`a token outside of ${texts.length}`);
  const [starts, shares] = [numbersOf(times, ids.length), numbersOf(logProbs, ids.length)];
  if ((times && !starts) || (logProbs && !shares)) return failed(`not ${ids.length} times or probabilities`);
  const mean = (from: number, to: number) =>
    [...(shares?.subarray(from, to) ?? [])].reduce((sum, share) => sum + share, 0) / Math.max(1, to - from);
  const found = wordsOfTokens(ids, texts);
  const words = found.map(({ word, first, last }) => ({
    word,
    ...(starts && {
      start: starts[first] as number,
      ...(last + 1 < ids.length && { end: starts[last + 1] as number }),
    }),
    confidence: Math.exp(mean(first, last + 1)),
  }));
  const spoken = (found.at(-1)?.last ?? -1) + 1;
  return ok({ words, logProbability: mean(0, spoken) });
}

/** Longest word: a pause behind it is none of its sound. A letter takes 0.1 s of slow speech. */
const longest = (word: string) => 0.3 + 0.1 * word.length;
/** Shortest last word: a token behind it may have its time. A letter takes 0.05 s of quick speech. */
const shortest = (word: string) => 0.05 * word.length;

/**
 * Words with times in the order of the text, none behind the utterance. Without times of the model each letter
 * takes the same share of the utterance.
 */
function placeInTime(words: readonly Spelled[], seconds: number): DecodedWord[] {
  const letters = words.reduce((sum, { word }) => sum + word.length + 1, 0);
  const inside = (time: number) => Math.round(1_000 * Math.max(0, Math.min(seconds, time)));
  let [from, spelled] = [0, 0];
  return words.map(({ word, start, end, confidence }, i) => {
    const share = (seconds * spelled) / letters;
    spelled += word.length + 1;
    const begin = start ?? share;
    const next = end ?? words[i + 1]?.start ?? (start === undefined ? (seconds * spelled) / letters : seconds);
    const startFrame = Math.max(from, inside(begin));
    const least = i === words.length - 1 ? begin + shortest(word) : 0;
    const endFrame = Math.max(startFrame, inside(Math.max(least, Math.min(next, begin + longest(word)))));
    from = startFrame;
    return { word, startFrame, endFrame, confidence };
  });
}
