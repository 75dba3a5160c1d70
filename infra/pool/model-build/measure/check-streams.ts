// The mixed load of the evidence "load": live streams with recordings beside them, as agents send both.
import { readInt32 } from '../../../../shared/kserve/tensor.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { MODEL_RATE } from '../../agent/audio/mono.ts';
import type { Engine, Inference } from '../../agent/engine/engine.ts';
import type { LiveModel } from '../../agent/models/live-model.ts';
import { createSequenceIds } from '../../agent/stream/sequence-ids.ts';
import { audioInference } from './audio-inference.ts';
import { MEASURE_STREAMS } from './limits.ts';

/**
 * Steps of each of these streams: 2.5 s of speech, 48 steps in all, of which a shared batch fails a tenth or
 * more.
 */
export const MEASURE_STREAM_STEPS = 8;

export interface StreamTrial {
  readonly infer: Engine['infer'];
  /** The model of recordings. */
  readonly model: string;
  readonly live: LiveModel;
}

/** Number of frames of an answer, or the reason of a failure. */
type Answer = Result<number, string>;

/**
 * Lengths of the recordings, samples: none is that of a window, and all are short, so that steps meet many of
 * them.
 */
const RECORDINGS = [0.6, 1.1, 1.6].map((seconds) => seconds * MODEL_RATE);

/** Returns a rising tone, so that no window equals another. */
const toneOf = (samples: number, stream: number): Float32Array =>
  Float32Array.from({ length: samples }, (_, at) => 0.3 * Math.sin(at * at * 1e-6 * (stream + 1)));

/**
 * Runs each stream alone, then all of them at once beside successive recordings. Returns the reason why the
 * model cannot serve both; `undefined` when every step succeeds and gives as many frames as it does alone.
 */
export async function findStreamProblem(trial: StreamTrial): Promise<string | undefined> {
  const newId = createSequenceIds(Math.random());
  const streams = Array.from({ length: MEASURE_STREAMS }, (_, stream) => stream);
  const alone: Answer[][] = [];
  for (const stream of streams) alone.push(await runStream(trial, stream, newId()));
  const failed = alone.flat().find((answer) => !answer.ok);
  if (failed) return `a stream step fails without other traffic: ${failed.refusal}`;

  let streaming = true;
  const record = async (stream: number): Promise<string | undefined> => {
    while (streaming) {
      const answer = await infer(trial, toneOf(RECORDINGS[stream % RECORDINGS.length] ?? 0, stream));
      if (!answer.ok) return answer.refusal;
    }
    return undefined;
  };
  const recordings = streams.map(record);
  const beside = await Promise.all(streams.map((stream) => runStream(trial, stream, newId())));
  streaming = false;
  const broken = (await Promise.all(recordings)).find((failure) => failure !== undefined);
  if (broken !== undefined) return `a recording beside streams fails: ${broken}`;
  const failures = beside.flatMap((answers, stream) =>
    answers.flatMap((answer, step) => failureOf(answer, alone[stream]?.[step]) ?? []),
  );
  return failures.length === 0
    ? undefined
    : `${failures.length} of ${beside.flat().length} stream steps fail beside recordings: ${failures[0]}`;
}

function failureOf(answer: Answer, alone: Answer | undefined): string | undefined {
  if (!answer.ok) return answer.refusal;
  return alone?.ok && alone.value !== answer.value ? `${answer.value} frames instead of ${alone.value}` : undefined;
}

/**
 * Runs one utterance window by window, each right after the answer to the last: no sequence is idle
 * meanwhile.
 */
async function runStream(trial: StreamTrial, stream: number, id: number): Promise<Answer[]> {
  const { hopSamples, windowSamples } = trial.live;
  const steps = MEASURE_STREAM_STEPS;
  const sound = toneOf((steps - 1) * hopSamples + windowSamples, stream);
  const answers: Answer[] = [];
  for (let step = 0; step < steps; step++) {
    const from = step * hopSamples;
    const place = { id, start: step === 0, end: step === steps - 1 };
    answers.push(await infer(trial, sound.subarray(from, from + windowSamples), place));
  }
  return answers;
}

async function infer(trial: StreamTrial, samples: Float32Array, sequence?: Inference['sequence']): Promise<Answer> {
  const model = sequence ? trial.live.model : trial.model;
  const answered = await trial.infer(audioInference(model, samples, sequence));
  if (!answered.ok) return no(answered.detail);
  const frames = answered.value.get('FRAMES');
  const read = frames && readInt32(frames);
  return read?.ok ? ok(read.value[0] ?? 0) : no('the answer has no FRAMES');
}
