// Word errors of two networks on the same recordings: 100 speakers with 20 utterances each, made of the two
// voices of the repository with a fixed seed. A speaker is a voice with its own pitch, loudness and noise.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Evidence } from '../../shared/registry/evidence.ts';
import type { SpeakerErrors } from '../../shared/registry/quality.ts';
import { QUALITY_SPEAKERS, QUALITY_UTTERANCES } from '../../shared/registry/quality.ts';
import { seeded } from '../../shared/registry/seeded.ts';
import { drawTexts, openVoice, prepare } from '../bench/voice.bench.ts';
import { countErrors, decoders, type Features, openFeatures, openNetwork } from '../infra/model-build/listen.ts';

const SEED = 8;
/** Words of an utterance: there are 2,000 of them. */
const WORDS = 1;
const NO_BOOKS = '';
/** Silence around the speech, in samples. */
const AROUND = 2_000;
const decoder = decoders.letters();

export type ErrorCounts = readonly { readonly words: number; readonly errors: number }[][];

export interface Hearing {
  /** Transcribes each utterance of each speaker; caches by network. `folder` is that of its model. */
  hear(folder: string): Promise<ErrorCounts>;
}

/** Features are made once, for all networks that will hear them. */
export async function makeSet(): Promise<Hearing> {
  const [{ speaker, voices }, features] = [await openVoice(), await openFeatures()];
  const texts = ((await drawTexts(QUALITY_UTTERANCES, NO_BOOKS)).words as string[]).map((text) =>
    text.split(' ').slice(0, WORDS).join(' '),
  );
  const said: Float32Array[][] = [];
  for (const voice of voices) {
    const own: Float32Array[] = [];
    for (const text of texts) {
      const spoken = await speaker.speak(text, { voice }, AbortSignal.timeout(60_000));
      if (!spoken.ok) throw new Error(`${text}: ${spoken.refusal.reason}`);
      own.push(prepare(spoken.value).slice(AROUND, -AROUND));
    }
    said.push(own);
  }
  const random = seeded(SEED);
  const set: Features[][] = [];
  for (let one = 0; one < QUALITY_SPEAKERS; one += 1) {
    const as = { pitch: 0.94 + 0.12 * random(), gain: 0.3 + 0.7 * random(), noise: 0.006 * random() };
    const own = said[one % said.length] as Float32Array[];
    const heard: Features[] = [];
    for (const [at, text] of texts.entries())
      heard.push(await features(text, disguise(own[at] as Float32Array, as, random)));
    set.push(heard);
  }
  const known = new Map<string, Promise<ErrorCounts>>();
  return {
    hear(folder) {
      const network = readFileSync(path.join(folder, '1/model.onnx'));
      const digest = createHash('sha256').update(network).digest('hex');
      const heard = known.get(digest) ?? hearAll(network, set);
      known.set(digest, heard);
      return heard;
    },
  };
}

interface Disguise {
  readonly pitch: number;
  readonly gain: number;
  readonly noise: number;
}

/** Read faster or slower, which changes pitch and pace; louder or not; with noise. */
function disguise(sound: Float32Array, { pitch, gain, noise }: Disguise, random: () => number): Float32Array {
  const made = new Float32Array(Math.floor(sound.length / pitch));
  for (const at of made.keys()) {
    const from = at * pitch;
    const [low, part] = [Math.floor(from), from % 1];
    const sample = (sound[low] ?? 0) * (1 - part) + (sound[low + 1] ?? 0) * part;
    made[at] = Math.max(-1, Math.min(1, gain * sample + noise * (2 * random() - 1)));
  }
  return made;
}

async function hearAll(network: Uint8Array, set: readonly Features[][]): Promise<ErrorCounts> {
  const opened = await openNetwork(network);
  try {
    const heard: { words: number; errors: number }[][] = [];
    for (const speaker of set) {
      const own: { words: number; errors: number }[] = [];
      for (const one of speaker) {
        const errors = countErrors(decoder, await opened.hear(one), one.text);
        own.push({ words: one.text.split(' ').length, errors });
      }
      heard.push(own);
    }
    return heard;
  } finally {
    await opened.close();
  }
}

/** Both on the same recordings, speaker by speaker. */
export function compare(before: ErrorCounts, after: ErrorCounts, tool: string): Evidence {
  const speakers = before.map((own, at): SpeakerErrors => {
    const other = after[at] ?? [];
    const sum = (all: readonly { errors: number }[]) => all.reduce((total, { errors }) => total + errors, 0);
    const words = own.reduce((total, one) => total + one.words, 0);
    return { utterances: own.length, words, before: sum(own), after: sum(other) };
  });
  return {
    kind: 'quality',
    tool,
    language: 'en',
    set: `voice-en, seed ${SEED}, words of the lexicon`,
    seed: SEED,
    speakers,
  };
}
