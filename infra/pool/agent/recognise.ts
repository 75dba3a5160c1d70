import { setImmediate } from 'node:timers/promises';
import { fp32Tensor, int32Tensor, readFp32, readInt32, type Tensor } from '../../../shared/kserve/tensor.ts';
import { limits } from '../../../shared/limits.ts';
import { type Refusal, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import type { Segment } from '../../../shared/speech/transcript.ts';
import type { RequestClass } from '../../../shared/tenant/claims.ts';
import type { Decoded, WordDecoder } from './decode/decoder.ts';
import type { Dispatcher } from './dispatch.ts';
import { MODEL_RATE } from './sound/mono.ts';
import type { Utterance } from './voice/cut.ts';

/** Tensors of a model for transcription, as the ensembles of the repository name them. */
export const modelTensors = { inputs: ['AUDIO', 'AUDIO_LENGTH'], outputs: ['LOG_PROBS', 'FRAMES'] } as const;

/** A model as it is asked: its name at the engine, its decoder, and how long one frame of its answer is. */
export interface Recogniser {
  readonly model: string;
  readonly decoder: WordDecoder;
  readonly frameSeconds: number;
}

export interface RecognitionOptions {
  readonly recogniser: Recogniser;
  readonly dispatcher: Dispatcher;
  readonly class: RequestClass;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  /** Gets the segments in the order of the recording. */
  readonly onSegment: (segment: Segment) => Promise<void>;
}

interface Scores {
  readonly logProbs: Float32Array;
  readonly frames: number;
  readonly tokens: number;
}

function readScores(outputs: ReadonlyMap<string, Tensor>): Result<Scores> {
  const wrong = (detail: string) => no(refuse('engine_failed', undefined, `engine answer: ${detail}`));
  const [table, count] = [outputs.get('LOG_PROBS'), outputs.get('FRAMES')];
  if (!table || !count) return wrong('an output is missing');
  const [logProbs, frames] = [readFp32(table), readInt32(count)];
  if (!logProbs.ok) return wrong(logProbs.refusal.reason);
  if (!frames.ok) return wrong(frames.refusal.reason);
  const [, rows = 0, tokens = 0] = table.shape;
  const used = frames.value[0] ?? -1;
  if (table.shape.length !== 3 || used < 0 || used > rows) return wrong(`shape [${table.shape}], ${used} frames`);
  return ok({ logProbs: logProbs.value.subarray(0, used * tokens), frames: used, tokens });
}

/** Mean of the best log probability of each frame: how sure the network was, whatever the words became. */
function meanBest({ logProbs, frames, tokens }: Scores): number {
  let sum = 0;
  for (let row = 0; row < frames; row++) {
    let best = Number.NEGATIVE_INFINITY;
    for (let i = row * tokens; i < (row + 1) * tokens; i++) best = Math.max(best, logProbs[i] as number);
    sum += best;
  }
  return frames > 0 ? Math.min(0, sum / frames) : 0;
}

/** Frames decoded in one turn of the event loop: 2 s of sound, some tens of milliseconds. */
const TURN_FRAMES = 50;

const round = (seconds: number) => Math.round(seconds * 1_000) / 1_000;
const share = (value: number) => Math.max(0, Math.min(1, value));

/**
 * Finds the words. A beam search over noise takes most of a second, so it lets others have a turn every now and then:
 * heartbeats, keepalives and other requests run on the same thread.
 */
async function findWords(decoder: WordDecoder, { logProbs, frames, tokens }: Scores): Promise<Decoded> {
  const decoding = decoder.begin();
  for (let at = 0; at < frames; at += TURN_FRAMES) {
    const count = Math.min(TURN_FRAMES, frames - at);
    decoding.push(logProbs.subarray(at * tokens, (at + count) * tokens), count);
    await setImmediate();
  }
  return decoding.finish();
}

/** One utterance as a segment; `undefined` when nothing was said in it. Times count samples from the start. */
async function makeSegment(
  { decoder, frameSeconds }: Recogniser,
  utterance: Utterance,
  scores: Scores,
  index: number,
): Promise<Segment | undefined> {
  const { text, words, confidence } = await findWords(decoder, scores);
  if (words.length === 0) return undefined;
  const start = utterance.start / MODEL_RATE;
  const end = start + utterance.samples.length / MODEL_RATE;
  const at = (frame: number) => round(Math.min(end, start + frame * frameSeconds));
  return {
    type: 'segment',
    index,
    start: at(words[0]?.startFrame ?? 0),
    end: at(words.at(-1)?.endFrame ?? 0),
    text,
    confidence: share(confidence),
    logProbability: meanBest(scores),
    words: words.map((word) => ({
      word: word.word,
      start: at(word.startFrame),
      end: at(word.endFrame),
      confidence: share(word.confidence),
    })),
  };
}

/**
 * The recognition of one recording. At most `limits.utterancesInFlight` utterances are with the engine or in its queue;
 * further ones wait, and with them whoever reads the body. Segments come out in order.
 */
export function createRecognition(options: RecognitionOptions) {
  const { recogniser, dispatcher, onSegment } = options;
  let segments = 0;
  let inFlight = 0;
  let refusal: Refusal | undefined;
  let last: Promise<void> = Promise.resolve();
  let wake = () => {};

  async function infer({ samples }: Utterance): Promise<Result<Scores>> {
    const answer = await dispatcher.run({
      model: recogniser.model,
      inputs: [
        fp32Tensor('AUDIO', samples, [1, samples.length]),
        int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1]),
      ],
      outputs: modelTensors.outputs,
      class: options.class,
      deadline: options.deadline,
      signal: options.signal,
    });
    return answer.ok ? readScores(answer.value) : answer;
  }

  async function emit(utterance: Utterance, scores: Promise<Result<Scores>>, before: Promise<void>) {
    const result = await scores;
    await before;
    if (!result.ok) refusal ??= result.refusal;
    const segment =
      result.ok && !refusal ? await makeSegment(recogniser, utterance, result.value, segments) : undefined;
    if (segment) {
      segments++;
      await onSegment(segment);
    }
    inFlight--;
    wake();
  }

  return {
    /** Hands an utterance over; resolves when the next one may come. */
    async add(utterance: Utterance): Promise<Result<undefined>> {
      if (refusal) return no(refusal);
      inFlight++;
      last = emit(utterance, infer(utterance), last);
      // Errors surface in `finish`; until then they must not count as unhandled.
      last.catch(() => wake());
      while (inFlight >= limits.utterancesInFlight.value && !refusal && !options.signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          last.catch(() => resolve());
        });
      }
      return refusal ? no(refusal) : ok(undefined);
    },
    /** All segments were emitted; their number. */
    async finish(): Promise<Result<number>> {
      await last;
      return refusal ? no(refusal) : ok(segments);
    },
  };
}
