// Transcription of recordings by a model at an engine, with the agent's own cutting, inference and decoding.
import { createReadStream } from 'node:fs';
import { ok, type Result } from '../../../../shared/result.ts';
import { joinWords } from '../../../../shared/speech/words.ts';
import { createRecognition, inputsOf, readScores, tensorsOf } from '../../agent/asr/recognise.ts';
import { recogniseRecording } from '../../agent/asr/recognise-recording.ts';
import type { Recogniser } from '../../agent/asr/segment.ts';
import type { Utterance } from '../../agent/asr/vad/cut.ts';
import type { RecordingTotals } from '../../agent/asr/vad/listen.ts';
import { decodeSound } from '../../agent/audio/decode.ts';
import { MODEL_RATE } from '../../agent/audio/mono.ts';
import { createDispatcher } from '../../agent/engine/dispatch.ts';
import { createKserveEngine } from '../../agent/engine/kserve.ts';
import type { SpeechModel } from '../../agent/models/models.ts';
import { UTTERANCES_IN_FLIGHT_MAX } from '../../agent/settings/limits.ts';
import { type BuildResult, problem } from '../problem.ts';
import { audioInference } from './audio-inference.ts';
import { MEASURE_CONCURRENT_MAX } from './limits.ts';
import type { Cut } from './measure-latency.ts';

/** Concurrent callers under which latency is measured: more is a load test, which `auricle load` does. */
export const MEASURE_PARALLEL_MAX = 64;
/** Longest work on one recording: beyond it the engine is broken, and its answers are no measurement. */
const MEASURE_RECORDING_MS = 600_000;

const uncounted = { utterance: () => {} };

/** Passes the utterances of a recording on as they are cut. */
async function cutRecording(
  file: string,
  add: (one: Utterance) => Promise<Result<undefined>>,
): Promise<BuildResult<RecordingTotals>> {
  try {
    const sound = decodeSound(createReadStream(file));
    const totals = await recogniseRecording({ sound, recognition: { add }, metrics: uncounted });
    if (totals.ok) return totals;
    const { reason, detail } = totals.refusal;
    return reason.startsWith('audio_')
      ? problem('unreadable', `${file}: ${reason}`)
      : problem('engine', `${file}: ${detail ?? reason}`);
  } catch (error) {
    return problem('unreadable', `${file}: ${(error as NodeJS.ErrnoException).code ?? 'it cannot be read'}`);
  }
}

/** Reads all utterances of a recording, for repeated use. */
export async function readCut(file: string): Promise<BuildResult<Cut>> {
  const utterances: Float32Array[] = [];
  const totals = await cutRecording(file, async ({ samples }) => {
    utterances.push(samples);
    return ok(undefined);
  });
  return totals.ok ? ok({ seconds: totals.value.seconds, utterances }) : totals;
}

/** A model at an engine that transcribes recordings. */
export interface Transcriber {
  /** Begins the transcription of a recording. */
  begin(signal: AbortSignal): {
    add(one: Utterance): Promise<Result<undefined>>;
    finish(): Promise<BuildResult<string>>;
  };
  close(): void;
}

export interface Listener extends Transcriber {
  readonly recogniser: Recogniser;
  /** Runs one utterance to log probabilities, once. */
  infer(samples: Float32Array): Promise<BuildResult<undefined>>;
}

/**
 * Opens a listener. `recogniserOf` is that of `createRecognisers`: listeners to the same recordings mostly
 * share words.
 */
export async function openListener(
  url: string,
  model: SpeechModel,
  recogniserOf: (model: SpeechModel) => Promise<Recogniser>,
): Promise<Listener> {
  const { name } = model.description;
  const slots = MEASURE_CONCURRENT_MAX * UTTERANCES_IN_FLIGHT_MAX;
  const engine = createKserveEngine(url, Math.max(slots, MEASURE_PARALLEL_MAX));
  const recogniser = await recogniserOf(model);
  const dispatcher = createDispatcher({ engine, slots, now: Date.now });
  return {
    recogniser,
    async infer(samples) {
      const { outputs } = tensorsOf(recogniser);
      const tensors = { inputs: inputsOf(samples, recogniser), outputs };
      const answered = await engine.infer({ ...audioInference(name, samples), ...tensors });
      if (!answered.ok) return problem('engine', `${name}: ${answered.detail}`);
      const scores =
        'text' in recogniser
          ? recogniser.text.read(answered.value, samples.length / MODEL_RATE)
          : readScores(answered.value, recogniser.decoder.width);
      return scores.ok ? ok(undefined) : problem('engine', `${name}: ${scores.refusal.detail}`);
    },
    begin(signal) {
      const texts: string[] = [];
      const recognition = createRecognition({
        recogniser,
        dispatcher,
        class: 'default',
        deadline: Date.now() + MEASURE_RECORDING_MS,
        signal,
        async onSegment({ text }) {
          texts.push(text);
        },
      });
      return {
        add: recognition.add,
        async finish() {
          const finished = await recognition.finish();
          if (finished.ok) return ok(joinWords(texts));
          return problem('engine', `${name}: ${finished.refusal.detail ?? finished.refusal.reason}`);
        },
      };
    },
    close: engine.close,
  };
}

/** Returns each transcript of a recording, which is decoded and cut once. */
export async function transcribeAll(
  file: string,
  transcribers: readonly Transcriber[],
): Promise<BuildResult<string[]>> {
  const begun = transcribers.map((one) => one.begin(AbortSignal.timeout(MEASURE_RECORDING_MS)));
  const totals = await cutRecording(file, async (utterance) => {
    for (const one of begun) {
      const added = await one.add(utterance);
      if (!added.ok) return added;
    }
    return ok(undefined);
  });
  // No work continues after the answer, even after a failure.
  const texts = await Promise.all(begun.map((one) => one.finish()));
  if (!totals.ok) return totals;
  const failed = texts.find((one) => !one.ok);
  if (failed && !failed.ok) return failed;
  return ok(texts.map((one) => (one.ok ? one.value : '')));
}
