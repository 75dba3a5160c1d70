import { encodeBytesElements } from '../../../../shared/kserve/bytes-elements.ts';
import { fp32Tensor, int32Tensor, readFp32, readInt32, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Bias } from '../../../../shared/speech/terms.ts';
import type { Segment } from '../../../../shared/speech/transcript.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import type { Span } from '../../../../shared/trace/span.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import type { Dispatcher } from '../engine/dispatch.ts';
import { UTTERANCES_IN_FLIGHT_MAX } from '../settings/limits.ts';
import { bugDetail } from '../telemetry/log.ts';
import { makeSegments, type Recogniser, type Scores, segmentsOf, TEXT_FRAME_SECONDS } from './segment.ts';
import type { Utterance } from './vad/cut.ts';

/** Tensors of a model for transcription, as the ensembles of the repository name them. */
export const modelTensors = { inputs: ['AUDIO', 'AUDIO_LENGTH'], outputs: ['LOG_PROBS', 'FRAMES'] } as const;

/** Tensors of a recogniser's model. */
export const tensorsOf = (recogniser: Recogniser): { inputs: readonly string[]; outputs: readonly string[] } =>
  'text' in recogniser
    ? { inputs: modelTensors.inputs.slice(0, recogniser.takesLength ? 2 : 1), outputs: recogniser.text.outputs }
    : modelTensors;

/** Inputs of one utterance; those of a network that gives scores without a recogniser. */
export function inputsOf(samples: Float32Array, recogniser?: Recogniser, bias?: Bias): Tensor[] {
  const { takesLength, takesPrompt = false } = recogniser && 'text' in recogniser ? recogniser : { takesLength: true };
  const prompt = encodeBytesElements([new TextEncoder().encode(bias?.prompt)]);
  return [
    fp32Tensor('AUDIO', samples, [1, samples.length]),
    ...(takesLength ? [int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1])] : []),
    ...(takesPrompt ? [{ name: 'PROMPT', datatype: 'BYTES', shape: [1, 1], bytes: prompt } as const] : []),
  ];
}

/** Returns the segments in an answer of the engine, counted from `index`. */
async function readSegments(
  { recogniser, bias, isNarrow }: Pick<RecognitionOptions, 'recogniser' | 'bias' | 'isNarrow'>,
  utterance: Utterance,
  outputs: ReadonlyMap<string, Tensor>,
  index: number,
): Promise<Result<Segment[]>> {
  if (!('text' in recogniser)) {
    const scores = readScores(outputs, recogniser.decoder.width);
    if (!scores.ok) return scores;
    return makeSegments({ ...recogniser, terms: bias?.()?.terms, isNarrow }, utterance, scores.value, index);
  }
  const seconds = utterance.samples.length / MODEL_RATE;
  const heard = recogniser.text.read(outputs, seconds);
  const start = utterance.start / MODEL_RATE;
  const place = { start, end: start + seconds, frameSeconds: TEXT_FRAME_SECONDS };
  return heard.ok ? segmentsOf({ ...heard.value, ...place }, index) : heard;
}

export interface RecognitionOptions {
  readonly recogniser: Recogniser;
  readonly dispatcher: Pick<Dispatcher, 'run'>;
  /** Called for each utterance: a form may name its words after the recognition was opened. */
  readonly bias?: (() => Bias | undefined) | undefined;
  /** Decodes with fewer hypotheses (A20). */
  readonly isNarrow?: boolean | undefined;
  readonly class: RequestClass;
  /** Absent: the agent's own work. */
  readonly tenant?: string | undefined;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  /** Span of the request. */
  readonly span?: Span | undefined;
  /** Called when an utterance gets its slot of the engine. */
  readonly onStart?: (() => void) | undefined;
  /** Gets the segments in the order of the recording. */
  readonly onSegment: (segment: Segment) => Promise<void>;
}

/** Scores in an answer of the engine, `width` columns wide. Refuses with `engine_failed` what is none. */
export function readScores(outputs: ReadonlyMap<string, Tensor>, width: number): Result<Scores> {
  const wrong = (detail: string) => no(refuse('engine_failed', undefined, `engine answer: ${detail}`));
  const [table, count] = [outputs.get('LOG_PROBS'), outputs.get('FRAMES')];
  if (!table || !count) return wrong('an output is missing');
  const [logProbs, frames] = [readFp32(table), readInt32(count)];
  if (!logProbs.ok) return wrong(logProbs.refusal.reason);
  if (!frames.ok) return wrong(frames.refusal.reason);
  const [, rows = 0, tokens = 0] = table.shape;
  const used = frames.value[0] ?? -1;
  if (table.shape.length !== 3 || used < 0 || used > rows) return wrong(`shape [${table.shape}], ${used} frames`);
  // Read with the wrong alphabet, numbers become words that were never said.
  if (tokens !== width) return wrong(`${tokens} columns, a vocabulary of ${width}`);
  return ok({ logProbs: logProbs.value.subarray(0, used * tokens), frames: used, tokens });
}

/**
 * Recognises one recording. At most `UTTERANCES_IN_FLIGHT_MAX` utterances are with the engine or in its
 * queue; further ones wait, and with them the reader of the body. Segments come out in order. Neither method
 * rejects: a bug is an `internal` refusal, with its place in the detail.
 */
export function createRecognition(options: RecognitionOptions) {
  const { recogniser, dispatcher, onSegment, signal } = options;
  let segments = 0;
  let inFlight = 0;
  let refusal: Refusal | undefined;
  let last: Promise<void> = Promise.resolve();
  let wake = () => {};
  signal.addEventListener('abort', () => wake(), { once: true });

  async function infer({ samples }: Utterance): Promise<Result<ReadonlyMap<string, Tensor>>> {
    const { outputs } = tensorsOf(recogniser);
    return dispatcher.run({
      model: recogniser.model,
      inputs: inputsOf(samples, recogniser, options.bias?.()),
      outputs,
      class: options.class,
      tenant: options.tenant,
      deadline: options.deadline,
      signal,
      span: options.span,
      onStart: options.onStart,
    });
  }

  type Answer = ReturnType<typeof infer>;
  async function emit(utterance: Utterance, answer: Answer, before: Promise<void>): Promise<void> {
    try {
      const result = await answer;
      await before;
      if (!result.ok) refusal ??= result.refusal;
      if (!result.ok || refusal) return;
      const made = await readSegments(options, utterance, result.value, segments);
      if (!made.ok) refusal = made.refusal;
      for (const segment of made.ok ? made.value : []) {
        segments++;
        await onSegment(utterance.channel === undefined ? segment : { ...segment, channel: utterance.channel });
      }
    } catch (error) {
      refusal ??= refuse('internal', undefined, bugDetail(error));
    } finally {
      inFlight--;
      wake();
    }
  }

  return {
    /** Hands an utterance over; resolves when the next one may come. */
    async add(utterance: Utterance): Promise<Result<undefined>> {
      if (refusal) return no(refusal);
      inFlight++;
      last = emit(utterance, infer(utterance), last);
      while (inFlight >= UTTERANCES_IN_FLIGHT_MAX && !refusal && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
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
