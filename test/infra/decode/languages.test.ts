import { readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { createDecoder } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { openStream } from '../../../infra/pool/training/reference/stream.ts';

const root = path.join(import.meta.dirname, '../../..');
const repository = path.join(root, 'infra/pool/models/repository');
const clips = path.join(root, 'test/clips/languages');

interface Clip {
  readonly language: string;
  readonly file: string;
  readonly text: string;
}

const listed = JSON.parse(readFileSync(path.join(clips, 'clips.json'), 'utf8')) as Clip[];
const spoken = [
  ...listed.filter(({ file }) => file.endsWith('.wav')),
  { language: 'en', file: '../meeting.wav', text: '' },
];

/** Samples of a clip of 16 kHz, mono, 16 bits. */
async function readClip(file: string): Promise<Float32Array> {
  const bytes = await readFile(path.join(clips, file));
  const samples = new Int16Array(new Uint8Array(bytes.subarray(bytes.indexOf('data', 12, 'latin1') + 8)).buffer);
  return Float32Array.from(samples, (sample) => sample / 32768);
}

function readParameters(model: string): Record<string, string | undefined> {
  const parsed = parseText(readFileSync(path.join(repository, model, 'config.pbtxt'), 'utf8'));
  if (!parsed.ok) throw new Error(parsed.refusal.reason);
  return Object.fromEntries(Object.entries(parsed.value.parameters).map(([key, value]) => [key, value.string_value]));
}

const open = (model: string) =>
  InferenceSession.create(path.join(repository, model, '1/model.onnx'), { intraOpNumThreads: 1 });

function readDecoder(language: string) {
  const given = readParameters(`reference-${language}`);
  const unpack = (file: string) =>
    gunzipSync(readFileSync(path.join(repository, `reference-${language}`, file))).toString();
  return createDecoder({
    tokens: readFileSync(path.join(repository, `reference-${language}`, 'tokens.txt'), 'utf8')
      .trimEnd()
      .split('\n'),
    blank: 0,
    wordBoundary: 1,
    ...(given.lexicon && { lexicon: unpack(given.lexicon).trimEnd().split('\n') }),
    ...(given.language_model && { languageModel: unpack(given.language_model) }),
  });
}

describe('A17 the reference models of other languages', () => {
  it.each(listed.filter(({ file }) => file.endsWith('.wav')))('hears $language in $file as a stream', async (clip) => {
    const decoding = readDecoder(clip.language).begin();
    const windows = (await openStream(repository, clip.language)).run(await readClip(clip.file));
    for await (const { logProbs, frames } of windows) decoding.push(logProbs, frames);
    expect(decoding.finish().text).toBe(clip.text);
  });

  it('A17 the detector names the language of each clip', async () => {
    const languages = readParameters('language-id').languages?.split(',') ?? [];
    const [features, scores] = [await open('vad_preprocess'), await open('language_scores')];
    for (const { language, file } of spoken) {
      const audio = await readClip(file);
      const { FEATURES, FEATURE_LENGTH } = await features.run({
        AUDIO: new Tensor('float32', audio, [audio.length]),
        AUDIO_LENGTH: new Tensor('int32', [audio.length], [1, 1]),
        AUDIO_OFFSETS: new Tensor('float32', [audio.length], [1]),
      });
      const { LOG_PROBS } = await scores.run({ FEATURES: FEATURES!, FEATURE_LENGTH: FEATURE_LENGTH! });
      const row = [...(LOG_PROBS!.data as Float32Array)];
      expect([file, languages[row.indexOf(Math.max(...row))]]).toEqual([file, language]);
    }
  });

  it.each(['es', 'zh', 'yue'])('A17 the card of %s gives the figures measured', (language) => {
    const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
    const { figures } = JSON.parse(read(`test/bench/results/wer-${language}.json`)) as {
      figures: Record<string, number>;
    };
    const card = read('infra/pool/training/reference/README.md');
    expect(figures.wer_espeak).toBeLessThanOrEqual(0.12);
    const row = card.split('\n').find((line) => line.startsWith(`| \`reference-${language}\``));
    expect(row).toContain(`**${((figures.wer_espeak ?? 1) * 100).toFixed(1)} %**`);
    const whole = statSync(path.join(repository, `asr_inference_${language}/1/model.onnx`)).size;
    expect(row).toContain(whole.toLocaleString('en'));
  });
});
