import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { createDecoder } from '../../agent/asr/decode/decoder.ts';

/** Opens the reference recogniser without a server: audio at 16 kHz to words. */
export async function openHearing(repository: string): Promise<(audio: Float32Array) => Promise<string>> {
  const open = (model: string) =>
    InferenceSession.create(path.join(repository, model, '1/model.onnx'), { intraOpNumThreads: 1 });
  const [features, network, scores] = [
    await open('vad_preprocess'),
    await open('asr_inference'),
    await open('nlp_postprocess'),
  ];
  const read = (file: string) => readFile(path.join(repository, 'reference-en', file));
  const lines = (text: Buffer) => text.toString().trimEnd().split('\n');
  const decoder = createDecoder({
    tokens: lines(await read('tokens.txt')),
    blank: 0,
    wordBoundary: 1,
    lexicon: lines(gunzipSync(await read('lexicon.txt.gz'))),
    languageModel: gunzipSync(await read('words.lm.gz')).toString(),
  });
  return async (audio) => {
    const { FEATURES, FEATURE_LENGTH } = await features.run({
      AUDIO: new Tensor('float32', audio, [audio.length]),
      AUDIO_LENGTH: new Tensor('int32', [audio.length], [1, 1]),
      AUDIO_OFFSETS: new Tensor('float32', [audio.length], [1]),
    });
    const { LOGITS, FRAMES } = await network.run({ FEATURES: FEATURES!, FEATURE_LENGTH: FEATURE_LENGTH! });
    const { LOG_PROBS } = await scores.run({ LOGITS: LOGITS!, FRAMES_IN: FRAMES! });
    const decoding = decoder.begin();
    decoding.push(LOG_PROBS!.data as Float32Array, Number(FRAMES!.data[0]));
    return decoding.finish().text;
  };
}
