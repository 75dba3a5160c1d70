/**
 * Error rates of the shipped files, with the agent's own decoder, on the test set that testset.py speaks, whole and as
 * a live stream; words of English and Spanish, characters of Mandarin and Cantonese:
 *
 *   node measure.ts [--language en] [--test work/test] [--every N] [--write]
 *
 * `--every N` takes every Nth utterance; `--write` puts the figures into test/bench/results/wer.json, for another
 * language than English wer-LANGUAGE.json.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { countWordErrors } from '../../../../shared/registry/word-errors.ts';
import { createDecoder, type DecodedSoFar, type WordDecoder } from '../../agent/asr/decode/decoder.ts';
import { openStream } from './stream.ts';

interface Utterance {
  readonly text: string;
  readonly voice: string;
  readonly samples: number;
}

const here = import.meta.dirname;
const repository = path.join(here, '../../models/repository');
const { values: chosen } = parseArgs({
  options: {
    language: { type: 'string', default: 'en' },
    test: { type: 'string', default: path.join(here, 'work/test') },
    every: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
  },
});
const { language } = chosen;
const reference = path.join(repository, `reference-${language}`);
const suffix = language === 'en' ? '' : `_${language}`;
const SETS = language === 'en' ? ['espeak', 'flite', 'flite_heldout'] : ['espeak'];
type Precision = 'int8' | 'fp16' | 'fp32';
const PRECISIONS: Partial<Record<Precision, string>> = {
  [language === 'yue' ? 'fp32' : 'int8']: `asr_inference${suffix}`,
  ...((language === 'en' || language === 'zh') && { fp16: `asr_inference${suffix}_fp16` }),
};
const PARAMETERS: Readonly<Record<string, number>> = { en: 5_253_449, es: 2_063_777, zh: 2_154_982, yue: 2_158_752 };
const SPOKEN = {
  en:
    '2000 utterances by espeak-ng voices unseen in training, 400 by flite voices seen in training and 100 by a flite ' +
    'voice unseen in training',
  other: '720 utterances by espeak-ng voices unseen in training; wer counts characters of zh and yue',
} as Readonly<Record<string, string>>;
const FILES = { ...PRECISIONS, stream: `asr_stream${suffix}` };
/** Precision of the figure of the requirement, and of the stream. */
const usual: Precision = language === 'yue' ? 'fp32' : 'int8';
const spaced = language === 'en' || language === 'es';
const unitsOf = (text: string) => (spaced ? text.split(' ') : [...text.replaceAll(' ', '')]);

const open = (model: string) =>
  InferenceSession.create(path.join(repository, model, '1/model.onnx'), { intraOpNumThreads: 1 });
const sessions = { features: await open('vad_preprocess'), scores: await open('nlp_postprocess') };
const precisions = Object.keys(PRECISIONS) as Precision[];
const networks = Object.fromEntries(
  await Promise.all(precisions.map(async (precision) => [precision, await open(PRECISIONS[precision]!)] as const)),
);
const stream = await openStream(repository, language);

async function createDecoders(): Promise<Record<string, WordDecoder>> {
  const read = (file: string) => readFile(path.join(reference, file));
  const unpack = async (file: string) => gunzipSync(await read(file)).toString();
  const tokens = (await read('tokens.txt')).toString().trimEnd().split('\n');
  const plain = { tokens, blank: 0, wordBoundary: 1 };
  // Characters have no lexicon: "lm" is the plain beam there.
  const words = spaced && {
    lexicon: (await unpack('lexicon.txt.gz')).trimEnd().split('\n'),
    languageModel: await unpack('words.lm.gz'),
  };
  return { greedy: createDecoder(plain, { beam: 1 }), lm: createDecoder({ ...plain, ...words }) };
}

async function infer(precision: Precision, features: InferenceSession.ReturnType) {
  const { LOGITS, FRAMES } = await networks[precision]!.run({
    FEATURES: features.FEATURES!,
    FEATURE_LENGTH: features.FEATURE_LENGTH!,
  });
  const { LOG_PROBS } = await sessions.scores.run({ LOGITS: LOGITS!, FRAMES_IN: FRAMES! });
  return { logProbs: LOG_PROBS!.data as Float32Array, frames: Number(FRAMES!.data[0]) };
}

function preprocess(audio: Float32Array) {
  return sessions.features.run({
    AUDIO: new Tensor('float32', audio, [audio.length]),
    AUDIO_LENGTH: new Tensor('int32', [audio.length], [1, 1]),
    AUDIO_OFFSETS: new Tensor('float32', [audio.length], [1]),
  });
}

const spent = { features: 0, int8: 0, fp16: 0, fp32: 0, stream: 0, greedy: 0, lm: 0, live: 0, sound: 0 };

/** Adds seconds of computation; other load of the machine does not count. */
async function timed<T>(what: keyof typeof spent, action: () => T | Promise<T>): Promise<T> {
  const before = process.cpuUsage();
  const result = await action();
  const { user, system } = process.cpuUsage(before);
  spent[what] += (user + system) / 1_000_000;
  return result;
}

/** Milliseconds from the last letter of a word to its final appearance, and to its stability. */
const lag: { shown: number[]; stable: number[] } = { shown: [], stable: [] };

/** Transcribes a live stream, with an interim at every window. */
async function listen(audio: Float32Array, decoder: WordDecoder): Promise<string> {
  const decoding = decoder.begin();
  const looks: { at: number; so: DecodedSoFar }[] = [];
  const windows = stream.run(audio);
  for (;;) {
    const next = await timed('stream', () => windows.next());
    if (next.done) break;
    const { logProbs, frames, until } = next.value;
    const so = await timed('live', () => {
      decoding.push(logProbs, frames);
      return decoding.partial();
    });
    looks.push({ at: until / 16, so });
  }
  const { text, words } = decoding.finish();
  for (const [place, { word, endFrame }] of words.entries()) {
    const shown = looks.findLastIndex(({ so }) => so.words[place]?.word !== word) + 1;
    const stable = looks.findIndex(({ so }) => so.stable > place);
    for (const [what, look] of Object.entries({ shown, stable })) {
      const { at } = looks[look] ?? looks.at(-1)!;
      lag[what as keyof typeof lag].push(at - endFrame * 40);
    }
  }
  return text;
}

async function measureSet(name: string, decoders: Record<string, WordDecoder>, every: number) {
  const listed = JSON.parse(await readFile(path.join(chosen.test, language, `${name}.json`), 'utf8')) as Utterance[];
  const bytes = await readFile(path.join(chosen.test, language, `${name}.pcm`));
  const sound = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
  const wrong: Record<string, number> = {};
  let [words, at] = [0, 0];
  for (const [index, { text, samples }] of listed.entries()) {
    const audio = Float32Array.from(sound.subarray(at, at + samples), (sample) => sample / 32768);
    at += samples;
    if (index % every !== 0) continue;
    spent.sound += samples / 16000;
    const spoken = unitsOf(text);
    words += spoken.length;
    const features = await timed('features', () => preprocess(audio));
    const count = (key: string, transcript: string) => {
      wrong[key] = (wrong[key] ?? 0) + countWordErrors(spoken, unitsOf(transcript));
    };
    count(`${usual}_stream_lm`, await listen(audio, decoders.lm!));
    for (const precision of precisions) {
      const { logProbs, frames } = await timed(precision, () => infer(precision, features));
      for (const how of ['greedy', 'lm'] as const) {
        const transcript = await timed(how, () => {
          const decoding = decoders[how]!.begin();
          decoding.push(logProbs, frames);
          return decoding.finish().text;
        });
        count(`${precision}_${how}`, transcript);
      }
    }
  }
  const rate = (count: number) => Math.round((count / words) * 10_000) / 10_000;
  return Object.fromEntries(Object.entries(wrong).map(([key, count]) => [`wer_${name}_${key}`, rate(count)]));
}

async function main() {
  const decoders = await createDecoders();
  const every = Number(chosen.every);
  const figures: Record<string, number> = {};
  for (const name of SETS) {
    Object.assign(figures, await measureSet(name, decoders, every));
    console.log(name, figures);
  }
  // Figures of the requirement: the usual file with the language model.
  for (const name of SETS) figures[`wer_${name}`] = figures[`wer_${name}_${usual}_lm`]!;
  if (PRECISIONS.fp16) figures.wer_fp16 = figures.wer_espeak_fp16_lm!;
  figures.params = PARAMETERS[language]!;
  for (const part of ['features', 'stream', ...precisions] as const)
    figures[`rtf_${part}`] = round(spent[part] / spent.sound);
  for (const part of ['greedy', 'lm'] as const)
    figures[`rtf_decode_${part}`] = round(spent[part] / spent.sound / precisions.length);
  figures.rtf_decode_live = round(spent.live / spent.sound);
  for (const [what, all] of Object.entries(lag)) {
    all.sort((a, b) => a - b);
    for (const share of [50, 90])
      figures[`lag_${what}_p${share}_ms`] = Math.round(all[Math.floor((all.length * share) / 100)]!);
  }
  for (const [part, model] of Object.entries(FILES)) {
    figures[`bytes_${part}`] = (await stat(path.join(repository, model, '1/model.onnx'))).size;
  }
  console.log(figures);
  if (!chosen.write) return;
  const results = path.join(here, '../../../../test/bench/results');
  await mkdir(results, { recursive: true });
  const report = {
    date: new Date().toISOString().slice(0, 10),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: here, encoding: 'utf8' }).trim(),
    machine: `${os.cpus()[0]?.model ?? 'unknown'}, ${os.cpus().length} cores, ${process.platform}-${process.arch}`,
    figures,
    how:
      `infra/pool/training/reference/testset.py --language ${language} (seed 100, Debian 12 packages), then measure.ts ` +
      `--language ${language} --every ${every}: ${SPOKEN[language] ?? SPOKEN.other}; all sentences unseen; ` +
      'one thread; rtf: seconds of computing per second of sound; stream: ' +
      'window by window as a live stream, features and scores included; lag: from the last letter of a word, with no ' +
      'time for computing, to when it is shown for good and to when it is stable',
  };
  await writeFile(path.join(results, `wer${suffix.replace('_', '-')}.json`), `${JSON.stringify(report, null, 2)}\n`);
}

const round = (value: number) => Math.round(value * 10_000) / 10_000;

await main();
