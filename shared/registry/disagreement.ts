// Judges how far a revision disagrees with the serving one. Live traffic has no reference text, so this is no
// word error rate but the distance of two answers. Bets on its mean stay valid under any number of looks; a
// stream is known by its bucket only, and each bet uses the end of the bucket that speaks against the bet.

import { CANARY_ALPHA, CANARY_BETA } from './limits.ts';
import { DISAGREEMENT_ENDS } from './live-counts.ts';
import type { Verdict } from './verdict.ts';

/**
 * Share of words in which mirrored and served answers may differ: equal revisions stay below it, others need
 * a person's review.
 */
export const GREY_DISAGREEMENT = 0.1;
/** Mirrored streams of a revision before it serves any. */
export const GREY_STREAMS = 200;

/** Parts of the largest stake with which no stream can ruin a bet. */
const STAKES = [0.05, 0.1, 0.25, 0.5, 0.75, 0.95];

/** Logarithm of the mean of all bets. */
function logMean(logs: readonly number[]): number {
  const top = Math.max(...logs);
  return top + Math.log(logs.reduce((sum, one) => sum + Math.exp(one - top), 0) / logs.length);
}

/** Bets that the mean is above `GREY_DISAGREEMENT`: a stream counts as the least that its bucket can be. */
const logApart = (differing: readonly number[]): number =>
  logMean(
    STAKES.map((part) => {
      const stake = part / GREY_DISAGREEMENT;
      return sumOf(differing, (at) => Math.log(1 + stake * ((DISAGREEMENT_ENDS[at - 1] ?? 0) - GREY_DISAGREEMENT)));
    }),
  );

/** Bets that the mean is below `GREY_DISAGREEMENT`: a stream counts as the most that its bucket can be. */
const logNear = (differing: readonly number[]): number =>
  logMean(
    STAKES.map((part) => {
      const stake = part / (1 - GREY_DISAGREEMENT);
      return sumOf(differing, (at) => Math.log(1 - stake * ((DISAGREEMENT_ENDS[at] ?? 1) - GREY_DISAGREEMENT)));
    }),
  );

const sumOf = (differing: readonly number[], log: (at: number) => number): number =>
  differing.reduce((sum, many, at) => sum + (many === 0 ? 0 : many * log(at)), 0);

/** Judges counts of streams by bucket of `DISAGREEMENT_ENDS`. */
export function evaluateDisagreement(differing: readonly number[]): Verdict {
  if (logApart(differing) >= -Math.log(CANARY_ALPHA)) return 'FAIL';
  const streams = differing.reduce((sum, many) => sum + many, 0);
  const near = logNear(differing) >= -Math.log(CANARY_BETA);
  return near && streams >= GREY_STREAMS ? 'PASS' : 'INCONCLUSIVE';
}
