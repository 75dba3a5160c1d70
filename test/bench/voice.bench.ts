// Recognition of the repository's voice by its recogniser, beside the voice's teacher: `npm run bench --
// voice [--each N]`. The teacher speaks where flite is installed (Debian: flite); sentences of books and
// dictionaries are included where `infra/pool/training/reference/sentences.py` has written them (`--books
// FILE`).
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { Task } from '../../infra/pool/agent/engine/dispatch.ts';
import { readRepository } from '../../infra/pool/agent/models/models.ts';
import { createSpeaker } from '../../infra/pool/agent/tts/create-speaker.ts';
import { openHearing } from '../../infra/pool/training/voice/hear.ts';
import { fp32Tensor, readFp32, readInt32 } from '../../shared/kserve/tensor.ts';
import { countWordErrors } from '../../shared/registry/word-errors.ts';
import { ok } from '../../shared/result.ts';
import { randomOf } from '../fake/random.ts';
import type { Bench } from './run.ts';

const MODEL = 'voice-en';
const RATE = 16_000;
/** Silence around the audio, samples: flite produces as much. */
const AROUND = RATE / 4;
const repository = path.resolve(import.meta.dirname, '../../infra/pool/models/repository');
const voiceFolder = path.resolve(import.meta.dirname, '../../infra/pool/training/voice');
const network = path.join(repository, MODEL, '1/model.onnx');

/** The voice as the agent speaks with it, the network in this process on one thread. */
export async function openVoice() {
  const session = await InferenceSession.create(network, { intraOpNumThreads: 1 });
  const model = (await readRepository(repository, { now: 0, onBroken: () => {} })).find(
    ({ description }) => description.name === MODEL,
  );
  if (!model?.speech) throw new Error(`${MODEL} is not in the repository`);
  const run = async ({ inputs }: Task) => {
    const given = inputs.map((tensor) => {
      const read = tensor.datatype === 'FP32' ? readFp32(tensor) : readInt32(tensor);
      if (!read.ok) throw new Error(read.refusal.reason);
      return [tensor.name, new Tensor(read.value, [...tensor.shape])] as const;
    });
    const { AUDIO } = await session.run(Object.fromEntries(given));
    const sound = AUDIO!.data as Float32Array;
    return ok(new Map([['AUDIO', fp32Tensor('AUDIO', sound, [1, sound.length])]]));
  };
  return {
    voices: model.speech.voices,
    speaker: createSpeaker({ model: MODEL, parameters: model.speech, run, now: Date.now }),
  };
}

/** Synthesises a text with flite; `undefined` where it is not installed. */
async function askTeacher(folder: string, voice: string, text: string): Promise<Int16Array | undefined> {
  const file = path.join(folder, 'said.wav');
  try {
    await promisify(execFile)('flite', ['-voice', voice, '-t', text, '-o', file]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const wave = await readFile(file);
  return new Int16Array(wave.buffer.slice(wave.byteOffset + 44, wave.byteOffset + wave.length));
}

/** Scales to nine tenths of full scale, as in the recogniser's training, and adds silence around. */
export function prepare(sound: Int16Array): Float32Array {
  const padded = new Float32Array(sound.length + 2 * AROUND);
  const peak = sound.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1);
  for (const [at, sample] of sound.entries()) padded[AROUND + at] = (0.9 * sample) / peak;
  return padded;
}

/** Word errors by speaker and voice. */
function createTally() {
  const count = new Map<string, { wrong: number; words: number }>();
  return {
    add(key: string, heard: string, text: string) {
      const words = text.split(' ');
      const { wrong, words: before } = count.get(key) ?? { wrong: 0, words: 0 };
      count.set(key, { wrong: wrong + countWordErrors(words, heard.split(' ')), words: before + words.length });
    },
    has: (key: string) => [...count.keys()].some((name) => name.startsWith(key)),
    /** Returns the rate over keys with this prefix. */
    rate(key: string) {
      const found = [...count].filter(([name]) => name.startsWith(key)).map(([, sums]) => sums);
      const sum = (what: 'wrong' | 'words') => found.reduce((total, sums) => total + sums[what], 0);
      return Math.round((10_000 * sum('wrong')) / sum('words')) / 10_000;
    },
  };
}

/** Returns texts by kind, `each` of every kind. */
export async function drawTexts(each: number, books: string): Promise<Record<string, string[]>> {
  const random = randomOf(1);
  const draw = (from: readonly string[], count: number) =>
    Array.from({ length: count }, () => from[Math.floor(random() * from.length)]!);
  const lines = (text: string) => text.trim().split('\n');
  const words = lines(gunzipSync(await readFile(path.join(repository, 'reference-en/lexicon.txt.gz'))).toString());
  const known = words.map((line) => line.split(/\s/)[0]!).filter((word) => /^[a-z]{3,}$/.test(word));
  const unseen = await readFile(books, 'utf8').catch(() => undefined);
  return {
    patterns: draw(lines(await readFile(path.join(voiceFolder, 'unseen.txt'), 'utf8')), each),
    words: Array.from({ length: each }, () => draw(known, 6).join(' ')),
    ...(unseen && { books: draw(lines(unseen), each) }),
  };
}

export async function measure(options: string[]): Promise<Bench> {
  const usual = path.join(voiceFolder, 'work/text/test.txt');
  const { values } = parseArgs({
    args: options,
    options: { books: { type: 'string', default: usual }, each: { type: 'string', default: '100' } },
  });
  const texts = await drawTexts(Number(values.each), values.books);
  const [{ speaker, voices }, hear] = [await openVoice(), await openHearing(repository)];
  const folder = await mkdtemp(path.join(tmpdir(), 'auricle-voice-'));
  const tally = createTally();
  let [computing, seconds] = [0, 0];
  await speaker.speak('The first one is not counted.', {}, AbortSignal.timeout(60_000));

  async function judge(text: string, voice: string, kind: string): Promise<void> {
    const before = process.cpuUsage();
    const spoken = await speaker.speak(text, { voice }, AbortSignal.timeout(60_000));
    const { user, system } = process.cpuUsage(before);
    if (!spoken.ok) throw new Error(`${text}: ${spoken.refusal.reason}`);
    computing += (user + system) / 1_000_000;
    seconds += spoken.value.length / RATE;
    tally.add(`voice_${kind}_${voice}`, await hear(prepare(spoken.value)), text);
    const taught = await askTeacher(folder, voice, text);
    if (taught) tally.add(`teacher_${kind}_${voice}`, await hear(prepare(taught)), text);
  }

  const kinds = Object.keys(texts);
  try {
    for (const kind of kinds)
      for (const text of texts[kind]!) for (const voice of voices) await judge(text, voice, kind);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const who = ['voice', 'teacher'].filter((one) => tally.has(`${one}_`));
  const figures = {
    ...Object.fromEntries(who.map((one) => [`${one}_wer`, tally.rate(`${one}_`)])),
    ...Object.fromEntries(
      who.flatMap((one) => kinds.map((kind) => [`${one}_wer_${kind}`, tally.rate(`${one}_${kind}`)])),
    ),
    voice_rtf: Math.round((1_000 * computing) / seconds) / 1_000,
    voice_bytes: (await stat(network)).size,
    voice_sentences: Object.values(texts).flat().length,
  };
  const percent = (key: string) => (tally.has(key) ? `${(100 * tally.rate(key)).toFixed(2)} %` : 'not installed');
  const table = kinds.flatMap((kind) =>
    voices.map((voice) => ({
      text: kind,
      voice,
      'word errors': percent(`voice_${kind}_${voice}`),
      'of flite': percent(`teacher_${kind}_${voice}`),
    })),
  );
  return { table, figures, how: explain(Number(values.each), voices, kinds) };
}

const explain = (each: number, voices: readonly string[], kinds: readonly string[]) =>
  `${each} texts of each kind (${kinds.join(', ')}), spoken by each of ${voices.join(', ')} and by the flite voice of that name, ` +
  'its teacher, and heard by reference-en (INT8, language model) with a quarter of a second of silence around. Neither voice ' +
  'nor recogniser was taught with them: patterns are of unseen.txt, words are six drawn from the lexicon of the recogniser, ' +
  'books are of the test text of sentences.py. voice_rtf: seconds of processor time for a second of speech, from text to ' +
  'samples, network on one thread.';
