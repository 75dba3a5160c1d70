// A22's table for the reference recogniser on this processor: time, memory and errors of each precision, beside 32 bits in
// the same run: `npm run bench -- precision [--each N] [--calibrate N]`.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { CALIBRATION_SAMPLES_MAX } from '../../infra/pool/model-build/quantise/samples.ts';
import { countErrors, decoders, type Features, openFeatures, openNetwork } from '../infra/model-build/listen.ts';
import { makeNetworks, type Precision, precisions } from './precision/networks.ts';
import { weigh } from './precision/weigh.ts';
import type { Bench } from './run.ts';
import { drawTexts, openVoice, prepare } from './voice.bench.ts';

/** No file of that name: the texts of books are not everywhere. */
const NO_BOOKS = '';

const names: Readonly<Record<Precision, string>> = {
  fp32: 'FP32',
  fp16: 'FP16 (widened on load)',
  int8_dynamic: 'INT8 dynamic',
  int8_static: 'INT8 static',
  int8_shipped: 'INT8 as shipped (a scale for each frame)',
};

interface Row {
  readonly bytes: number;
  readonly memory: number;
  readonly times: number[];
  readonly wrong: { letters: number; words: number };
}

/** Texts that are tested come first in what is drawn, those that scales are taken from behind them. */
async function drawSpoken(each: number, calibrating: number) {
  const drawn = await drawTexts(each + calibrating, NO_BOOKS);
  const tested = Object.values(drawn).flatMap((texts) => texts.slice(0, each));
  const known = new Set(tested);
  const behind = Object.values(drawn).map((texts) => texts.slice(each));
  const mixed = Array.from({ length: calibrating }, (_, at) => behind.map((texts) => texts[at] as string)).flat();
  return { tested, calibrated: mixed.filter((text) => !known.has(text)).slice(0, calibrating) };
}

async function speak(): Promise<(text: string, at: number) => Promise<Features>> {
  const [{ speaker, voices }, features] = [await openVoice(), await openFeatures()];
  return async (text, at) => {
    const voice = voices[at % voices.length] as string;
    const spoken = await speaker.speak(text, { voice }, AbortSignal.timeout(60_000));
    if (!spoken.ok) throw new Error(`${text}: ${spoken.refusal.reason}`);
    return features(text, prepare(spoken.value));
  };
}

/** Runs all networks in turn over each utterance, so that other load of the machine affects all. */
async function listen(
  networks: Record<Precision, Uint8Array>,
  heard: readonly Features[],
  rows: Record<Precision, Row>,
) {
  const decoder = { letters: decoders.letters(), words: decoders.words() };
  const opened = await Promise.all(precisions.map(async (name) => [name, await openNetwork(networks[name])] as const));
  // The first run of a session makes room for what follows.
  for (const [, network] of opened) await network.run(heard[0] as Features);
  for (const features of heard) {
    for (const [name, network] of opened) {
      const began = performance.now();
      const answer = await network.run(features);
      rows[name].times.push(performance.now() - began);
      const letters = await network.read(answer);
      for (const how of ['letters', 'words'] as const)
        rows[name].wrong[how] += countErrors(decoder[how], letters, features.text);
    }
  }
  for (const [, network] of opened) await network.close();
}

export async function measure(options: string[]): Promise<Bench> {
  const { values } = parseArgs({
    args: options,
    options: {
      each: { type: 'string', default: '200' },
      calibrate: { type: 'string', default: String(CALIBRATION_SAMPLES_MAX) },
    },
  });
  const { tested, calibrated } = await drawSpoken(Number(values.each), Number(values.calibrate));
  const say = await speak();
  async function* samples() {
    for (const [at, text] of calibrated.entries()) yield (await say(text, at)).tensors;
  }
  const networks = await makeNetworks(samples());
  const folder = await mkdtemp(path.join(tmpdir(), 'auricle-precision-'));
  const rows = {} as Record<Precision, Row>;
  try {
    for (const name of precisions) {
      const file = path.join(folder, `${name}.onnx`);
      await writeFile(file, networks[name]);
      const memory = await weigh(file);
      rows[name] = { bytes: networks[name].length, memory, times: [], wrong: { letters: 0, words: 0 } };
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const heard: Features[] = [];
  for (const [at, text] of tested.entries()) heard.push(await say(text, at));
  await listen(networks, heard, rows);
  return report(rows, tested, calibrated.length);
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const at = (values: readonly number[], share: number) =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length * share)] ?? Number.NaN;
const round = (value: number, digits: number) => Number(value.toFixed(digits));

function report(rows: Record<Precision, Row>, tested: readonly string[], calibrated: number): Bench {
  const words = sum(tested.map((text) => text.split(' ').length));
  const full = rows.fp32;
  const ratio = (name: Precision) => sum(rows[name].times) / sum(full.times);
  const table = precisions.map((name) => {
    const { bytes, memory, times, wrong } = rows[name];
    return {
      precision: names[name],
      'p50 ms': round(at(times, 0.5), 2),
      'p95 ms': round(at(times, 0.95), 2),
      'time vs FP32': `${round(100 * (ratio(name) - 1), 1)} %`,
      'file MB': round(bytes / 1e6, 2),
      'memory MB': round(memory / 1e6, 1),
      'word errors': `${round((100 * wrong.words) / words, 2)} %`,
      'points vs FP32': round((100 * (wrong.words - full.wrong.words)) / words, 2),
      'letters only': `${round((100 * wrong.letters) / words, 2)} %`,
    };
  });
  const figures = Object.fromEntries(
    precisions.flatMap((name) => [
      [`time_vs_fp32_${name}`, round(ratio(name), 3)],
      [`memory_vs_fp32_${name}`, round(rows[name].memory / full.memory, 3)],
      [`bytes_${name}`, rows[name].bytes],
      [`wer_${name}`, round(rows[name].wrong.words / words, 4)],
      [`wer_letters_${name}`, round(rows[name].wrong.letters / words, 4)],
    ]),
  );
  return {
    table,
    figures: { ...figures, utterances: tested.length, calibrated },
    how: explain(tested.length, calibrated),
  };
}

const explain = (tested: number, calibrated: number) =>
  `The network of reference-en on ONNX Runtime's CPU kernels, one thread, all precisions in turn over each of ${tested} utterances ` +
  'of voice-en (half patterns of unseen.txt, half six words drawn from the lexicon); time is that of the network alone. FP32 is FP16 ' +
  'widened, INT8 is made of it by infra/pool/model-build/quantise; static scales are of ' +
  `${calibrated} other texts. Memory is what a process of its own grows by when it loads the network and hears ten seconds. Word ` +
  'errors with the language model, and of letters alone. A processor has no kernels for FP16 and for 2:4 sparse weights: FP16 is ' +
  'half the file and the same sums, sparsity is not measured.';
