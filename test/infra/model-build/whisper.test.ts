import { InferenceSession, Tensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { buildWhisper } from '../../../infra/pool/model-build/whisper/build-whisper.ts';

const [WIDTH, END, NO_TIMES] = [64, 12, 14];
const vocabulary = [...'abcdefghijkl', '<|endoftext|>', '<|startoftranscript|>', '<|notimestamps|>'];

/** Shapes of a Whisper with one layer on each side. */
function shapes(): Record<string, number[]> {
  const all: Record<string, number[]> = {
    'encoder/conv1/weight': [WIDTH, 80, 3],
    'encoder/conv1/bias': [WIDTH],
    'encoder/conv2/weight': [WIDTH, WIDTH, 3],
    'encoder/conv2/bias': [WIDTH],
    'encoder/position_encodings/encodings': [1500, WIDTH],
    'decoder/position_encodings/encodings': [448, WIDTH],
    'decoder/embeddings/weight': [vocabulary.length, WIDTH],
  };
  const norm = (name: string) => {
    all[`${name}/gamma`] = [WIDTH];
    all[`${name}/beta`] = [WIDTH];
  };
  for (const [side, parts] of [
    ['encoder', ['self_attention', 'ffn']],
    ['decoder', ['self_attention', 'attention', 'ffn']],
  ] as const) {
    norm(`${side}/layer_norm`);
    for (const part of parts) {
      norm(`${side}/layer_0/${part}/layer_norm`);
      const [outs, ins] =
        part === 'ffn'
          ? [
              [128, WIDTH],
              [WIDTH, 128],
            ]
          : part === 'attention'
            ? [[64, 128, 64], []]
            : [[192, 64], []];
      for (const [i, out] of outs.entries()) all[`${side}/layer_0/${part}/linear_${i}/weight`] = [out, ins[i] ?? WIDTH];
    }
  }
  return all;
}

/** A CTranslate2 file with weights of 16 bits between -1 and 1. */
function modelFile(): Uint8Array {
  const u16 = (value: number) => Buffer.from(Uint16Array.of(value).buffer);
  const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
  const text = (value: string) => Buffer.concat([u16(value.length + 1), Buffer.from(`${value}\0`)]);
  let seed = 7;
  const weights = Object.entries(shapes()).map(([name, dims]) => {
    const count = dims.reduce((product, dim) => product * dim, 1);
    // Sign, an exponent below 1, ten bits of fraction.
    const bits = Uint16Array.from({ length: count }, () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return ((seed >>> 31) << 15) | ((((seed >>> 28) & 3) + 9) << 10) | ((seed >>> 16) & 1023);
    });
    const head = [text(name), Buffer.of(dims.length), ...dims.map(u32), Buffer.of(4), u32(2 * count)];
    return Buffer.concat([...head, Buffer.from(bits.buffer)]);
  });
  return Buffer.concat([u32(6), text('WhisperSpec'), u32(3), u32(weights.length), ...weights]);
}

describe('U4 Whisper as one ONNX graph', () => {
  it('decodes sound to permitted tokens with times and probabilities, in bounded turns', async () => {
    const config = { suppress_ids: [3, -1], suppress_ids_begin: [5], alignment_heads: [[0, 0]] as [number, number][] };
    const session = await InferenceSession.create(buildWhisper({ weights: modelFile(), config, vocabulary }));
    for (const samples of [1_600, 16_000]) {
      const sound = Float32Array.from({ length: samples }, (_, i) => Math.sin(i / 20) * Math.sin(i / 900));
      const given = await session.run({ AUDIO: new Tensor('float32', sound, [1, samples]) });
      const [tokens = [], times = [], scores = []] = ['TOKENS', 'TOKEN_TIMES', 'TOKEN_LOG_PROBS'].map((name) =>
        Array.from(given[name]?.data as Iterable<number | bigint>, Number),
      );
      expect(tokens[0]).toBe(NO_TIMES);
      expect(tokens.slice(1).every((token) => token <= END && token !== 3)).toBe(true);
      expect(tokens[1]).not.toBe(5);
      expect(tokens.length).toBeLessThanOrEqual(16 + Math.ceil((12 * samples) / 16_000));
      expect(tokens.slice(0, -1)).not.toContain(END);
      expect([times.length, scores.length]).toEqual([tokens.length, tokens.length]);
      expect(times.every((time) => time >= 0 && time <= samples / 16_000)).toBe(true);
      expect(scores.every((score) => score <= 1e-6)).toBe(true);
    }
    await session.release();
  });
});
