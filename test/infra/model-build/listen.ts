// Transcripts of the reference recogniser with different networks.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { ROOT } from '../../../infra/local/root.ts';
import { createDecoder } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import { countWordErrors } from '../../../shared/registry/word-errors.ts';

const repository = path.join(ROOT, 'infra/pool/models/repository');
const read = (file: string) => readFileSync(path.join(repository, 'reference-en', file));
const lines = (text: Buffer) => text.toString().trimEnd().split('\n');
const plain = { tokens: lines(read('tokens.txt')), blank: 0, wordBoundary: 1 };

/** Letters only, which hides fewer mistakes of a network than words would, or with the language model. */
export const decoders = {
  letters: () => createDecoder(plain, { beam: 1 }),
  words: () =>
    createDecoder({
      ...plain,
      lexicon: lines(gunzipSync(read('lexicon.txt.gz'))),
      languageModel: gunzipSync(read('words.lm.gz')).toString(),
    }),
};

export interface Features {
  readonly text: string;
  readonly tensors: Readonly<Record<string, Tensor>>;
}

export interface Recognition {
  readonly probabilities: Float32Array;
  readonly frames: number;
}

/** The samples of a 16-bit WAV at 16 kHz behind its plain header. */
export function soundOf(file: string): Float32Array {
  const bytes = readFileSync(file);
  const samples = new Int16Array(bytes.buffer.slice(bytes.byteOffset + 44, bytes.byteOffset + (bytes.length & ~1)));
  return Float32Array.from(samples, (sample) => sample / 32768);
}

const open = (model: string) =>
  InferenceSession.create(path.join(repository, model, '1/model.onnx'), { intraOpNumThreads: 1 });

/** Sound at 16 kHz to features. */
export async function openFeatures(): Promise<(text: string, sound: Float32Array) => Promise<Features>> {
  const session = await open('vad_preprocess');
  return async (text, sound) => {
    const { FEATURES, FEATURE_LENGTH } = await session.run({
      AUDIO: new Tensor('float32', sound, [sound.length]),
      AUDIO_LENGTH: new Tensor('int32', [sound.length], [1, 1]),
      AUDIO_OFFSETS: new Tensor('float32', [sound.length], [1]),
    });
    return { text, tensors: { FEATURES: FEATURES!, FEATURE_LENGTH: FEATURE_LENGTH! } };
  };
}

/** A network of the recogniser's shape, on one thread. */
export async function openNetwork(bytes: Uint8Array) {
  const [session, scores] = [
    await InferenceSession.create(bytes, { intraOpNumThreads: 1 }),
    await open('nlp_postprocess'),
  ];
  return {
    /** The network alone: what is timed. */
    run: ({ tensors }: Features) => session.run({ ...tensors }),
    /** Log probabilities of letters. */
    async read({ LOGITS, FRAMES }: InferenceSession.ReturnType): Promise<Recognition> {
      const { LOG_PROBS } = await scores.run({ LOGITS: LOGITS!, FRAMES_IN: FRAMES! });
      return { probabilities: LOG_PROBS!.data as Float32Array, frames: Number(FRAMES!.data[0]) };
    },
    async hear(features: Features): Promise<Recognition> {
      return this.read(await this.run(features));
    },
    async close() {
      await session.release();
      await scores.release();
    },
  };
}

export function wordsOf(decoder: ReturnType<typeof createDecoder>, { probabilities, frames }: Recognition): string[] {
  const decoding = decoder.begin();
  decoding.push(probabilities, frames);
  return decoding.finish().text.split(' ');
}

export const countErrors = (decoder: ReturnType<typeof createDecoder>, heard: Recognition, text: string): number =>
  countWordErrors(text.split(' '), wordsOf(decoder, heard));
