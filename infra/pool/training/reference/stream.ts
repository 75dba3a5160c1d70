import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { parseText } from '../../models/config/parse-text.ts';

/** The network's output for one window of audio. */
export interface WindowResult {
  /** Natural-log probabilities of the tokens, `frames` rows. */
  readonly logProbs: Float32Array;
  readonly frames: number;
  /** End of the audio that the window needs, samples. */
  readonly until: number;
}

/**
 * Runs the steps of the ensemble `reference-LANGUAGE-stream` with the states of its configuration, as a server with
 * implicit state does for one sequence. `hear` returns the windows of one utterance in turn.
 */
export async function openStream(repository: string, language = 'en') {
  const asr = language === 'en' ? 'asr_stream' : `asr_stream_${language}`;
  const read = async (model: string) => {
    const parsed = parseText(await readFile(path.join(repository, model, 'config.pbtxt'), 'utf8'));
    if (!parsed.ok) throw new Error(`${model}: ${parsed.refusal.reason}`);
    return parsed.value;
  };
  const open = (model: string) =>
    InferenceSession.create(path.join(repository, model, '1/model.onnx'), { intraOpNumThreads: 1 });
  const states = (await read(asr)).sequence_batching?.state ?? [];
  const given = (await read(`reference-${language}-stream`)).parameters;
  const samplesOf = (name: string) => Number(given[name]?.string_value) * 16;
  const [window, hop] = [samplesOf('window_milliseconds'), samplesOf('hop_milliseconds')];
  const [features, network, scores] = [
    await open('vad_preprocess_stream'),
    await open(asr),
    await open('nlp_postprocess'),
  ];

  return {
    async *run(sound: Float32Array): AsyncGenerator<WindowResult> {
      let memory: Record<string, Tensor> = Object.fromEntries(
        states.map(({ input_name: name, dims }) => {
          const size = dims.reduce((product, dim) => product * dim, 1);
          return [name, new Tensor('float32', new Float32Array(size), [1, ...dims])];
        }),
      );
      for (let from = 0; from < sound.length; from += hop) {
        const audio = sound.slice(from, from + window);
        const { FEATURES, FEATURE_LENGTH } = await features.run({
          AUDIO: new Tensor('float32', audio, [audio.length]),
          AUDIO_LENGTH: new Tensor('int32', [audio.length], [1, 1]),
          AUDIO_OFFSETS: new Tensor('float32', [audio.length], [1]),
        });
        const step = await network.run({ FEATURES: FEATURES!, FEATURE_LENGTH: FEATURE_LENGTH!, ...memory });
        memory = Object.fromEntries(states.map((state) => [state.input_name, step[state.output_name]!]));
        const { LOG_PROBS, FRAMES } = await scores.run({ LOGITS: step.LOGITS!, FRAMES_IN: step.FRAMES! });
        const frames = Number(FRAMES!.data[0]);
        const logProbs = (LOG_PROBS!.data as Float32Array).slice(0, frames * LOG_PROBS!.dims[2]!);
        yield { logProbs, frames, until: from + audio.length };
      }
    },
  };
}
