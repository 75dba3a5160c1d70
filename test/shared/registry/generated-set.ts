import type { SpeakerErrors } from '../../../shared/registry/quality.ts';

interface Plan {
  readonly speakers: number;
  readonly utterances: number;
  /** Word error rate of the former revision. */
  readonly rate: number;
  /** Relative increase of the new revision's rate. */
  readonly worse: number;
}

/**
 * Spread of speakers (of the logarithm), and the share of an utterance's difficulty common to both revisions.
 */
const SPREAD = 0.6;
const SHARED = 0.6;

/** Errors of two revisions on the same recordings: speakers and utterances are hard or easy for both, mostly. */
export function generateSet(random: () => number, { speakers, utterances, rate, worse }: Plan): SpeakerErrors[] {
  return Array.from({ length: speakers }, () => {
    const speaker = Math.exp(SPREAD * normal(random) - SPREAD ** 2 / 2);
    const sums = { utterances, words: 0, before: 0, after: 0 };
    for (let at = 0; at < utterances; at += 1) {
      const words = 5 + Math.floor(random() * 21);
      const hard = gamma(random);
      const errors = (of: number) =>
        poisson(random, words * of * speaker * (SHARED * hard + (1 - SHARED) * gamma(random)));
      sums.words += words;
      sums.before += errors(rate);
      sums.after += errors(rate * (1 + worse));
    }
    return sums;
  });
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Shape 1.5, mean 1. */
const gamma = (random: () => number): number => (-Math.log(1 - random()) + normal(random) ** 2 / 2) / 1.5;

function poisson(random: () => number, mean: number): number {
  const end = Math.exp(-mean);
  let count = 0;
  for (let left = random(); left > end; left *= random()) count += 1;
  return count;
}
