// Does a revision say something else than the one that is served? Of live traffic nobody knows what was really said, so this
// is no word error rate: it is how far two answers are apart. Judged by bets on its mean, which stay valid however often
// one looks; of each stream only the bucket is known, and each bet takes the end of it that speaks against the bet.
import { limits } from '../limits.ts';
import { DISAGREEMENT_ENDS } from './live-counts.ts';
import type { Verdict } from './verdict.ts';

const MOST = limits.greyDisagreement.value;

/** Parts of the largest stake with which no stream can ruin a bet. */
const STAKES = [0.05, 0.1, 0.25, 0.5, 0.75, 0.95];

/** The logarithm of the mean of all bets. */
function logMean(logs: readonly number[]): number {
  const top = Math.max(...logs);
  return top + Math.log(logs.reduce((sum, one) => sum + Math.exp(one - top), 0) / logs.length);
}

/** Bets that the mean is above `MOST`: a stream counts as the least that its bucket can be. */
const logApart = (differing: readonly number[]): number =>
  logMean(
    STAKES.map((part) => {
      const stake = part / MOST;
      return sumOf(differing, (at) => Math.log(1 + stake * ((DISAGREEMENT_ENDS[at - 1] ?? 0) - MOST)));
    }),
  );

/** Bets that it is below: a stream counts as the most. */
const logNear = (differing: readonly number[]): number =>
  logMean(
    STAKES.map((part) => {
      const stake = part / (1 - MOST);
      return sumOf(differing, (at) => Math.log(1 - stake * ((DISAGREEMENT_ENDS[at] ?? 1) - MOST)));
    }),
  );

const sumOf = (differing: readonly number[], log: (at: number) => number): number =>
  differing.reduce((sum, many, at) => sum + (many === 0 ? 0 : many * log(at)), 0);

/** Streams by buckets of `DISAGREEMENT_ENDS`. */
export function judgeDisagreement(differing: readonly number[]): Verdict {
  if (logApart(differing) >= -Math.log(limits.canaryAlpha.value)) return 'FAIL';
  const streams = differing.reduce((sum, many) => sum + many, 0);
  const near = logNear(differing) >= -Math.log(limits.canaryBeta.value);
  return near && streams >= limits.greyStreams.value ? 'PASS' : 'INCONCLUSIVE';
}
