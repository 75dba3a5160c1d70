// How well the recogniser of the repository understands its voice, beside the voice's teacher: `npm run bench -- voice
// [--text FILE]`. The teacher speaks where flite is installed (Debian: flite).
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { Task } from '../../infra/pool/agent/dispatch.ts';
import { readRepository } from '../../infra/pool/agent/models.ts';
import { createSpeaker } from '../../infra/pool/agent/speak/create-speaker.ts';
import { wordErrors } from '../../infra/pool/models/reference/word-errors.ts';
import { openHearing } from '../../infra/pool/models/voice/hear.ts';
import { fp32Tensor, readFp32, readInt32 } from '../../shared/kserve/tensor.ts';
import { ok } from '../../shared/result.ts';
import type { Bench } from './run.ts';

const MODEL = 'voice-en';
const RATE = 16_000;
/** Silence around what is heard: flite speaks with as much. */
const AROUND = RATE / 4;
const repository = path.resolve(import.meta.dirname, '../../infra/pool/models/repository');
const network = path.join(repository, MODEL, '1/model.onnx');

/** The voice as the agent speaks with it, the network in this process on one thread. */
async function openVoice() {
  const session = await InferenceSession.create(network, { intraOpNumThreads: 1 });
  const model = (await readRepository(repository, 0, () => {})).find(({ description }) => description.name === MODEL);
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

/** What flite makes of a text with a voice; `undefined` where it is not installed. */
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

/** At nine tenths of full scale, as the recogniser was taught, with silence around. */
function prepare(sound: Int16Array): Float32Array {
  const padded = new Float32Array(sound.length + 2 * AROUND);
  const peak = sound.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1);
  for (const [at, sample] of sound.entries()) padded[AROUND + at] = (0.9 * sample) / peak;
  return padded;
}

/** Word errors by whom and by which voice. */
function createTally() {
  const count = new Map<string, { wrong: number; words: number }>();
  return {
    add(key: string, heard: string, text: string) {
      const words = text.split(' ');
      const { wrong, words: before } = count.get(key) ?? { wrong: 0, words: 0 };
      count.set(key, { wrong: wrong + wordErrors(heard.split(' '), words), words: before + words.length });
    },
    has: (key: string) => count.has(key),
    /** Of the keys that begin so. */
    rate(key: string) {
      const found = [...count].filter(([name]) => name.startsWith(key)).map(([, sums]) => sums);
      const sum = (what: 'wrong' | 'words') => found.reduce((total, sums) => total + sums[what], 0);
      return Math.round((10_000 * sum('wrong')) / sum('words')) / 10_000;
    },
  };
}

export async function measure(options: string[]): Promise<Bench> {
  const usual = path.resolve(import.meta.dirname, '../../infra/pool/models/voice/unseen.txt');
  const { values } = parseArgs({ args: options, options: { text: { type: 'string', default: usual } } });
  const texts = (await readFile(values.text, 'utf8')).trim().split('\n');
  const [{ speaker, voices }, hear] = [await openVoice(), await openHearing(repository)];
  const folder = await mkdtemp(path.join(tmpdir(), 'auricle-voice-'));
  const tally = createTally();
  let [computing, seconds] = [0, 0];
  await speaker.speak('The first one is not counted.', {}, AbortSignal.timeout(60_000));

  async function judge(text: string, voice: string): Promise<void> {
    const before = process.cpuUsage();
    const spoken = await speaker.speak(text, { voice }, AbortSignal.timeout(60_000));
    const { user, system } = process.cpuUsage(before);
    if (!spoken.ok) throw new Error(`${text}: ${spoken.refusal.reason}`);
    computing += (user + system) / 1_000_000;
    seconds += spoken.value.length / RATE;
    tally.add(`voice_${voice}`, await hear(prepare(spoken.value)), text);
    const taught = await askTeacher(folder, voice, text);
    if (taught) tally.add(`teacher_${voice}`, await hear(prepare(taught)), text);
  }

  try {
    for (const text of texts) for (const voice of voices) await judge(text, voice);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const who = ['voice', 'teacher'].filter((one) => tally.has(`${one}_${voices[0]}`));
  const figures = {
    ...Object.fromEntries(who.map((one) => [`${one}_wer`, tally.rate(one)])),
    ...Object.fromEntries(who.flatMap((one) => voices.map((v) => [`${one}_wer_${v}`, tally.rate(`${one}_${v}`)]))),
    voice_rtf: Math.round((1_000 * computing) / seconds) / 1_000,
    voice_bytes: (await stat(network)).size,
    voice_sentences: texts.length,
  };
  const percent = (key: string) => (tally.has(key) ? `${(100 * tally.rate(key)).toFixed(2)} %` : 'not installed');
  const table = voices.map((voice) => ({
    voice,
    'word errors': percent(`voice_${voice}`),
    'of flite': percent(`teacher_${voice}`),
  }));
  const how =
    `${texts.length} sentences that neither the voice nor the recogniser was taught with, spoken by each of ` +
    `${voices.join(', ')} and by the flite voice of that name, its teacher, and heard by reference-en (INT8, language ` +
    'model) with a quarter of a second of silence around; voice_rtf: seconds of processor time for a second of speech, ' +
    'from text to samples, network on one thread.';
  return { table, figures, how };
}
