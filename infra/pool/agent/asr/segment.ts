import { setImmediate } from 'node:timers/promises';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Term } from '../../../../shared/speech/terms.ts';
import type { Segment } from '../../../../shared/speech/transcript.ts';
import { joinWords } from '../../../../shared/speech/words.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { ANSWER_EVENT_BYTES } from '../settings/limits.ts';
import type { Decoded, DecodedWord, WordDecoder } from './decode/decoder.ts';
import type { TextReader } from './text/text-reader.ts';
import type { Utterance } from './vad/cut.ts';

/** Frames decoded in one turn of the event loop: 2 s of sound, some tens of milliseconds. */
export const DECODE_TURN_FRAMES = 50;

/** A model at the engine: its name, its decoder, and the duration of one output frame. */
export interface CtcRecogniser {
  readonly model: string;
  readonly decoder: WordDecoder;
  readonly frameSeconds: number;
}

/** A model at the engine whose answer is text. */
export interface TextRecogniser {
  readonly model: string;
  readonly text: TextReader;
  /** The model has an input `AUDIO_LENGTH`. */
  readonly takesLength: boolean;
  /** The model has an input `PROMPT`. */
  readonly takesPrompt?: boolean;
}

export type Recogniser = CtcRecogniser | TextRecogniser;

/** Length of a frame of `HeardText`, seconds. */
export const TEXT_FRAME_SECONDS = 0.001;

/** Log probabilities of one utterance: `frames` rows of `tokens` columns. */
export interface Scores {
  readonly logProbs: Float32Array;
  readonly frames: number;
  readonly tokens: number;
}

/** Sums the best log probability of each frame: the confidence of the network, independent of the words. */
export function sumBest({ logProbs, frames, tokens }: Scores): number {
  let sum = 0;
  for (let row = 0; row < frames; row++) {
    let best = Number.NEGATIVE_INFINITY;
    for (let i = row * tokens; i < (row + 1) * tokens; i++) best = Math.max(best, logProbs[i] as number);
    sum += best;
  }
  return sum;
}

const meanBest = (scores: Scores) => (scores.frames > 0 ? Math.min(0, sumBest(scores) / scores.frames) : 0);

const round = (seconds: number) => Math.round(seconds * 1_000) / 1_000;
const share = (value: number) => Math.max(0, Math.min(1, value));

/**
 * Decodes words. A beam search over noise takes most of a second, so it yields to heartbeats, keepalives and other
 * requests on the same thread after every `DECODE_TURN_FRAMES`.
 */
async function findWords(
  decoder: WordDecoder,
  { logProbs, frames, tokens }: Scores,
  { terms, isNarrow }: Pick<Decodable, 'terms' | 'isNarrow'>,
): Promise<Decoded> {
  const decoding = decoder.begin(terms, isNarrow);
  const most = DECODE_TURN_FRAMES;
  for (let at = 0; at < frames; at += most) {
    const count = Math.min(most, frames - at);
    decoding.push(logProbs.subarray(at * tokens, (at + count) * tokens), count);
    await setImmediate();
  }
  return decoding.finish();
}

type Words = readonly DecodedWord[];

/** Words in pieces that fit, halved until they do; `undefined` when a single word does not. */
function splitWords(words: Words, fits: (words: Words) => boolean): Words[] | undefined {
  if (words.length === 0) return [];
  if (fits(words)) return [words];
  if (words.length === 1) return undefined;
  const half = Math.ceil(words.length / 2);
  const [first, second] = [splitWords(words.slice(0, half), fits), splitWords(words.slice(half), fits)];
  return first && second && [...first, ...second];
}

const eventBytes = (segment: Segment) => Buffer.byteLength(JSON.stringify(segment));

/** Words found in an utterance, with its start and end in seconds of the recording. */
export interface SegmentWords {
  readonly words: Words;
  readonly start: number;
  readonly end: number;
  readonly frameSeconds: number;
  /** Mean of the best log probability of each frame. */
  readonly logProbability: number;
}

/** Words with their times in the recording. None lies behind the end of the utterance. */
export function placeWords({
  words,
  start,
  end,
  frameSeconds,
}: Omit<SegmentWords, 'logProbability'>): Segment['words'] {
  const at = (frame: number) => round(Math.min(end, start + frame * frameSeconds));
  return words.map((word) => ({
    word: word.word,
    start: at(word.startFrame),
    end: at(word.endFrame),
    confidence: share(word.confidence),
  }));
}

/**
 * Segments counted from `index`: none when nothing was said, one, or more when its words do not fit one event. Refuses
 * with `engine_failed` what cannot be words.
 */
export function segmentsOf(found: SegmentWords, index: number): Result<Segment[]> {
  if (!Number.isFinite(found.logProbability)) return failed('not probabilities');
  const segmentOf = (words: Words, number: number): Segment => {
    const placed = placeWords({ ...found, words });
    return {
      type: 'segment',
      index: number,
      start: placed[0]?.start ?? found.start,
      end: placed.at(-1)?.end ?? found.start,
      text: joinWords(placed.map(({ word }) => word)),
      confidence: share(words.reduce((sum, { confidence }) => sum + confidence, 0) / words.length),
      logProbability: found.logProbability,
      words: placed,
    };
  };
  // The number is not known yet; the largest there can be stands for it.
  const fits = (words: Words) => eventBytes(segmentOf(words, Number.MAX_SAFE_INTEGER)) <= ANSWER_EVENT_BYTES;
  const pieces = splitWords(found.words, fits);
  return pieces ? ok(pieces.map((words, i) => segmentOf(words, index + i))) : failed('a word longer than an event');
}

const failed = (detail: string) => no(refuse('engine_failed', undefined, `engine answer: ${detail}`));

/** A recogniser with the parameters of one request. */
interface Decodable extends CtcRecogniser {
  readonly terms?: readonly Term[] | undefined;
  /** Decodes with fewer hypotheses. */
  readonly isNarrow?: boolean | undefined;
}

/** One utterance as segments counted from `index`, as `segmentsOf`. Times count samples from the start. */
export async function makeSegments(
  { decoder, frameSeconds, terms, isNarrow }: Decodable,
  utterance: Utterance,
  scores: Scores,
  index: number,
): Promise<Result<Segment[]>> {
  const logProbability = meanBest(scores);
  if (!Number.isFinite(logProbability)) return failed('not probabilities');
  const { words } = await findWords(decoder, scores, { terms, isNarrow });
  const start = utterance.start / MODEL_RATE;
  const end = start + utterance.samples.length / MODEL_RATE;
  return segmentsOf({ words, start, end, frameSeconds, logProbability }, index);
}
