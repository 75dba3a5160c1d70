// Expected interim of each step of the clip, so that an arriving one can be timed from the audio its step
// needed.
import { createModelSource } from '../../../infra/pool/agent/models/model-source.ts';
import { createWords } from '../../../infra/pool/agent/stream/words.ts';
import { REPOSITORY } from './clip-sound.ts';
import { HOP_FRAMES } from './traffic.ts';

export interface Expected {
  /** Step of its utterance. */
  readonly step: number;
  /** Start of its first word, seconds from the first sample of the utterance. */
  readonly start: number;
}

/** Key that distinguishes the interims of an utterance. */
export const keyOf = ({ text, confidence }: { readonly text: string; readonly confidence: number }) =>
  `${text} ${confidence}`;

/** Returns interims by key; one that is unchanged over several steps counts for the first. */
export async function expectInterims(logProbs: readonly number[], tokens: number): Promise<Record<string, Expected>> {
  const noEngine = () => Promise.reject(new Error('nobody speaks here'));
  const models = await createModelSource({ repository: REPOSITORY, now: Date.now, log: () => {}, run: noEngine })();
  const recogniser = models.find(({ description }) => description.name === 'reference-en')?.recogniser;
  if (!recogniser || 'text' in recogniser) throw new Error('the reference model is not in the repository');
  const words = createWords(recogniser, 0);
  const expected: Record<string, Expected> = {};
  const frames = logProbs.length / tokens;
  for (let step = 0; step * HOP_FRAMES < frames; step += 1) {
    const [from, to] = [step, step + 1].map((at) => Math.min(frames, at * HOP_FRAMES) * tokens) as [number, number];
    words.push({ logProbs: Float32Array.from(logProbs.slice(from, to)), frames: (to - from) / tokens, tokens });
    const { event } = words.interim(0, (step + 1) * HOP_FRAMES * 640);
    if (event) expected[keyOf(event)] = { step, start: event.start };
  }
  return expected;
}
