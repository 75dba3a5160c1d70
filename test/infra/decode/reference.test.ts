import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { beforeAll, describe, expect, it } from 'vitest';
import { createDecoder, type WordDecoder } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import { openStream, type WindowResult } from '../../../infra/pool/training/reference/stream.ts';
import { randomOf } from '../../fake/random.ts';

const root = path.join(import.meta.dirname, '../../..');
const repository = path.join(root, 'infra/pool/models/repository');
const clips = path.join(root, 'test/clips');

interface Clip {
  readonly file: string;
  readonly text: string;
}

/** Samples of the clips that need no conversion: 16 kHz, mono, 16 bits, data right behind a 44-byte header or a LIST chunk. */
async function readClip(file: string): Promise<Float32Array> {
  const bytes = await readFile(path.join(clips, file));
  const data = bytes.indexOf('data', 12, 'latin1');
  const samples = new Int16Array(new Uint8Array(bytes.subarray(data + 8)).buffer);
  return Float32Array.from(samples, (sample) => sample / 32768);
}

const open = (model: string) =>
  InferenceSession.create(path.join(repository, model, '1/model.onnx'), { intraOpNumThreads: 1 });

/** The ensemble's steps by hand, all sounds in one ragged batch. */
async function infer(sounds: Float32Array[], network: InferenceSession) {
  const flat = new Float32Array(sounds.reduce((sum, sound) => sum + sound.length, 0));
  const ends: number[] = [];
  for (const sound of sounds) {
    flat.set(sound, ends.at(-1) ?? 0);
    ends.push((ends.at(-1) ?? 0) + sound.length);
  }
  const batch = sounds.length;
  const preprocess = await open('vad_preprocess');
  const { FEATURES, FEATURE_LENGTH, SPEECH } = await preprocess.run({
    AUDIO: new Tensor('float32', flat, [flat.length]),
    AUDIO_LENGTH: new Tensor(
      'int32',
      Int32Array.from(sounds, (sound) => sound.length),
      [batch, 1],
    ),
    AUDIO_OFFSETS: new Tensor('float32', Float32Array.from(ends), [batch]),
  });
  const { LOGITS, FRAMES } = await network.run({ FEATURES: FEATURES!, FEATURE_LENGTH: FEATURE_LENGTH! });
  const postprocess = await open('nlp_postprocess');
  const { LOG_PROBS } = await postprocess.run({ LOGITS: LOGITS!, FRAMES_IN: FRAMES! });
  const [, longest = 0, width = 0] = LOG_PROBS!.dims;
  const rows = LOG_PROBS!.data as Float32Array;
  const items = Array.from(FRAMES!.data as Int32Array, (frames, item) => {
    const from = item * longest * width;
    return { frames, logProbs: rows.slice(from, from + frames * width) };
  });
  return { items, speech: SPEECH!.data as Float32Array };
}

async function collect(windows: AsyncIterable<WindowResult>): Promise<WindowResult[]> {
  const collected: WindowResult[] = [];
  for await (const window of windows) collected.push(window);
  return collected;
}

describe('A24 the reference model and the decoder', () => {
  let decoder: WordDecoder;
  let spoken: { text: string; sound: Float32Array }[];

  beforeAll(async () => {
    const read = (file: string) => readFile(path.join(repository, 'reference-en', file));
    decoder = createDecoder({
      tokens: (await read('tokens.txt')).toString().trimEnd().split('\n'),
      blank: 0,
      wordBoundary: 1,
      lexicon: gunzipSync(await read('lexicon.txt.gz'))
        .toString()
        .trimEnd()
        .split('\n'),
      languageModel: gunzipSync(await read('words.lm.gz')).toString(),
    });
    const listed = JSON.parse(await readFile(path.join(clips, 'clips.json'), 'utf8')) as Clip[];
    const plain = listed.filter(({ file }) =>
      ['balance.wav', 'meeting.wav', 'number.wav', 'weather.wav'].includes(file),
    );
    spoken = await Promise.all(plain.map(async ({ file, text }) => ({ text, sound: await readClip(file) })));
  });

  it.each(['asr_inference', 'asr_inference_fp16'])(
    '%s understands the clips, together and alone',
    { timeout: 60_000 },
    async (model) => {
      const network = await open(model);
      const together = await infer(
        spoken.map(({ sound }) => sound),
        network,
      );
      for (const [index, { text, sound }] of spoken.entries()) {
        const { logProbs, frames } = together.items[index]!;
        const decoding = decoder.begin();
        decoding.push(logProbs, frames);
        const decoded = decoding.finish();
        expect(decoded.text).toBe(text);
        expect(decoded.confidence).toBeGreaterThan(0.8);
        let before = 0;
        for (const { startFrame, endFrame } of decoded.words) {
          expect(startFrame).toBeGreaterThanOrEqual(before);
          expect(endFrame).toBeGreaterThan(startFrame);
          before = endFrame;
        }
        expect(before).toBeLessThanOrEqual(frames);

        const alone = (await infer([sound], network)).items[0]!;
        expect(alone.frames).toBe(frames);
        const apart = logProbs.reduce((most, value, at) => Math.max(most, Math.abs(value - alone.logProbs[at]!)), 0);
        expect(apart).toBeLessThan(1e-3);
      }
    },
  );

  it('R1 A18: hears window by window, bit for bit, as in the whole sound', {
    timeout: 60_000,
  }, async () => {
    const whole = await open('asr_inference');
    const listener = await openStream(repository);
    for (const { text, sound } of spoken) {
      const { logProbs, frames } = (await infer([sound], whole)).items[0]!;
      const heard = await collect(listener.run(sound));
      expect(heard.reduce((sum, window) => sum + window.frames, 0)).toBe(frames);
      expect(heard.flatMap((window) => [...window.logProbs])).toEqual([...logProbs]);

      const decoding = decoder.begin();
      const looks = heard.map((window) => {
        decoding.push(window.logProbs, window.frames);
        return decoding.partial();
      });
      const final = decoding.finish();
      expect(final.text).toBe(text);
      for (const { words, stable } of looks) expect(words.slice(0, stable)).toEqual(final.words.slice(0, stable));
      // Most of a sentence is settled before it is over.
      expect(looks.at(-1)?.stable).toBeGreaterThanOrEqual(final.words.length / 2);
    }
  });

  it('A6 under noise, too, words called stable stay, however the sound is cut', { timeout: 60_000 }, async () => {
    const network = await open('asr_inference');
    const random = randomOf(5);
    let settled = 0;
    for (const loudness of [0.003, 0.01, 0.03, 0.1]) {
      const noisy = spoken.map(({ sound }) => sound.map((sample) => sample + loudness * (random() - 0.5)));
      for (const { logProbs, frames } of (await infer(noisy, network)).items) {
        const width = logProbs.length / frames;
        const once = decoder.begin();
        once.push(logProbs, frames);
        const final = once.finish();
        for (const longest of [1, 3, 8, 25]) {
          const decoding = decoder.begin();
          for (let at = 0; at < frames; ) {
            const count = Math.min(1 + Math.floor(random() * longest), frames - at);
            decoding.push(logProbs.subarray(at * width), count);
            at += count;
            const { words, stable } = decoding.partial();
            expect(words.slice(0, stable)).toEqual(final.words.slice(0, stable));
            if (at === frames) settled += stable;
          }
          expect(decoding.finish()).toEqual(final);
        }
      }
    }
    expect(settled).toBeGreaterThan(100);
  });

  it('hears no words in silence, nor in a sound shorter than one window', { timeout: 60_000 }, async () => {
    const network = await open('asr_inference');
    const { items, speech } = await infer([new Float32Array(16_000), new Float32Array(100)], network);
    expect(Math.max(...speech)).toBeLessThan(0.01);
    // Less than one window of 25 ms is no frame: what is left at the end of a stream often is that short.
    expect(items[1]?.frames).toBe(0);
    const short = await collect((await openStream(repository)).run(new Float32Array(399)));
    expect(short.map(({ frames }) => frames)).toEqual([0]);
    for (const { logProbs, frames } of items) {
      const decoding = decoder.begin();
      decoding.push(logProbs, frames);
      expect(decoding.finish()).toEqual({ text: '', words: [], confidence: 0 });
    }
  });
});
