// Which interim each step of the clip leads to, so that one that comes can be timed from the sound its step needed.
import { createModelSource } from '../../../infra/pool/agent/model-source.ts';
import { createWords } from '../../../infra/pool/agent/stream/words.ts';
import { REPOSITORY } from './clip-sound.ts';
import { HOP_FRAMES } from './traffic.ts';

export interface Expected {
  /** Which step of its utterance. */
  readonly step: number;
  /** Where its first word begins, seconds from the first sample of the utterance. */
  readonly start: number;
}

/** What tells one interim of an utterance from the others. */
export const keyOf = ({ text, confidence }: { readonly text: string; readonly confidence: number }) =>
  `${text} ${confidence}`;

/** By their keys; an interim that stays the same over several steps is told with the first. */
export async function expectInterims(logProbs: readonly number[], tokens: number): Promise<Record<string, Expected>> {
  const noEngine = () => Promise.reject(new Error('nobody speaks here'));
  const models = await createModelSource(REPOSITORY, Date.now, () => {}, noEngine)();
  const recogniser = models.find(({ description }) => description.name === 'reference-en')?.recogniser;
  if (!recogniser) throw new Error('the reference model is not in the repository');
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
