import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Bias } from '../../../../shared/speech/terms.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import { inputsOf, tensorsOf } from '../asr/recognise.ts';
import { segmentsOf, TEXT_FRAME_SECONDS, type TextRecogniser } from '../asr/segment.ts';
import type { HeardText } from '../asr/text/text-reader.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import { createAgreement } from './agreement.ts';
import { type Clock, pause } from './clock.ts';
import { pauseAfter } from './stall.ts';
import { STREAM_PATIENCE_MS, type StepOutcome, type Steps } from './steps.ts';
import type { Closing } from './utterance.ts';
import { createInterims, type LiveSegment } from './words.ts';

/** Samples of a millisecond, the frame of a text. */
const FRAME_SAMPLES = MODEL_RATE * TEXT_FRAME_SECONDS;

export interface RedecodeParts {
  readonly recogniser: TextRecogniser;
  readonly bias: Bias | undefined;
  readonly class: RequestClass;
  /** Least new sound between two decodings that are compared. */
  readonly live: { readonly hopSamples: number };
  readonly steps: Steps;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Returns the new samples from which an utterance is decoded again: at most `hopSamples`, and down to half of them while
 * decodings take no more than half of the time.
 */
export const redecodeAfter = (hopSamples: number, tookMs: number): number =>
  Math.min(hopSamples, Math.max(hopSamples / 2, (2 * tookMs * MODEL_RATE) / 1_000));

const gone = refuse('pool_lost', undefined, 'stream is over');

/**
 * One live utterance of a model that takes whole recordings: its sound is decoded again as it grows. `start`: its first
 * sample in the session.
 */
export function createRedecoding(parts: RedecodeParts, start: number) {
  const agreement = createAgreement();
  const startSeconds = start / MODEL_RATE;
  const interims = createInterims(startSeconds, TEXT_FRAME_SECONDS);
  /** Begin of the decoded window, ms of the utterance. */
  let from = 0;
  /** Samples of the last decoding, and of the last one that was compared. */
  let decoded = 0;
  let compared = 0;
  let state = agreement.show([], 0);
  let logProbability = 0;
  let latest: { readonly from: number; readonly heard: HeardText } | undefined;

  async function hear(read: Read, to: number): Promise<Result<HeardText>> {
    if (latest?.from === from && decoded === to) return ok(latest.heard);
    const samples = read(from * FRAME_SAMPLES, to);
    const answer = await inferPatiently(parts, samples);
    if (!answer.ok) return answer;
    const heard = parts.recogniser.text.read(answer.value, samples.length / MODEL_RATE);
    if (!heard.ok) return heard;
    decoded = to;
    ({ logProbability } = heard.value);
    const words = heard.value.words.map((word) => ({
      ...word,
      startFrame: word.startFrame + from,
      endFrame: word.endFrame + from,
    }));
    latest = { from, heard: { words, logProbability } };
    return ok(latest.heard);
  }

  return {
    /** Decodes the first `to` samples. Refuses with `engine_failed`. */
    async push(read: Read, to: number): Promise<Result<undefined>> {
      const heard = await hear(read, to);
      if (!heard.ok) return heard;
      if (to - compared < parts.live.hopSamples) {
        // Words that are compared too soon are stable before the sound that corrects them.
        state = agreement.show(heard.value.words, from);
        return ok(undefined);
      }
      compared = to;
      state = agreement.push(heard.value.words, from, to / FRAME_SAMPLES);
      from = agreement.from(to / FRAME_SAMPLES, from);
      return ok(undefined);
    },
    /** Seconds of the session up to which sound was decoded. */
    until: () => startSeconds + decoded / MODEL_RATE,
    /** Returns the interim of the last decoding, when it is worth sending. */
    interim: (index: number) => interims.next(state, index, decoded),
    /** Decodes the whole utterance for the last time. */
    async finish(read: Read, { samples, ending }: Closing, index: number): Promise<Result<LiveSegment[]>> {
      const heard = await hear(read, samples);
      if (!heard.ok) return heard;
      const { words } = agreement.show(heard.value.words, from);
      const end = startSeconds + samples / MODEL_RATE;
      const place = { start: startSeconds, end, frameSeconds: TEXT_FRAME_SECONDS, logProbability };
      const segments = segmentsOf({ words, ...place }, index);
      return segments.ok ? ok(segments.value.map((segment) => ({ ...segment, ending }))) : segments;
    },
  };
}

type Read = (from: number, to: number) => Float32Array;

/** Infers until the engine answers. Gives it up after `STREAM_PATIENCE_MS` of failures. */
async function inferPatiently(
  { recogniser, steps, clock, signal, ...parts }: RedecodeParts,
  samples: Float32Array,
): Promise<Result<Extract<StepOutcome, { ok: true }>['value']>> {
  const { outputs } = tensorsOf(recogniser);
  const inputs = inputsOf(samples, recogniser, parts.bias);
  const begun = clock.now();
  for (let failures = 1; ; failures++) {
    const outcome = await steps.run({
      ...{ model: recogniser.model, inputs, outputs, class: parts.class, signal },
      stallMs: STREAM_PATIENCE_MS,
      mayGiveUp: async () => true,
    });
    if (outcome.ok) return ok(outcome.value);
    if (signal.aborted || outcome.why === 'gone') return no(gone);
    const refusal: Refusal = outcome.refusal ?? refuse('engine_failed', undefined, outcome.detail);
    if (outcome.why === 'wrong' || clock.now() - begun > STREAM_PATIENCE_MS) return no(refusal);
    await pause(clock, pauseAfter(failures), signal);
  }
}
