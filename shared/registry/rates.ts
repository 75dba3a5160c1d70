// Compares the rate of bad streams with and without the canary, by an e-process, which stays valid under any
// number of looks and any stopping rule.
//
// Each bad stream is a coin that falls on the canary's side with probability theta = w·r / (w·r + 1 − w),
// where w is the canary's share and r the ratio of the two rates of bad streams. Nothing else is assumed: no
// shape of latencies, no rate, and w may change from step to step. Observations at one share reduce to a pair
// of counts, in any order. One stream is one event: shares are drawn by session, and events within a session
// are not independent.
import { z } from 'zod';
import { canaryShare, canaryShares } from './stage.ts';
import type { Verdict } from './verdict.ts';

/** Bad streams at one share. */
export const shareCounts = z.object({
  share: canaryShare,
  canary: z.number().int().nonnegative(),
  stable: z.number().int().nonnegative(),
});
export type ShareCounts = z.infer<typeof shareCounts>;

/** Alternatives to the null "r is at most 1". */
const HARM = [1.25, 1.5, 2, 3, 5];
/** Ratio that must not pass, and the alternatives (parts of it) to the null "r is at least UNSAFE". */
const UNSAFE = 1.5;
const SAFE = [0.3, 0.5, 0.65, 0.8].map((part) => UNSAFE * part);

type Bet = { readonly canary: number; readonly stable: number };

const theta = (share: number, ratio: number): number => (share * ratio) / (share * ratio + 1 - share);

/** Change of the logarithm of a bet on `ratio` against `other`, by one bad stream of either side. */
function betOn(share: number, ratio: number, other: number): Bet {
  const [one, none] = [theta(share, ratio), theta(share, other)];
  return { canary: Math.log(one / none), stable: Math.log((1 - one) / (1 - none)) };
}

const betsOn = (ratios: readonly number[], other: number): ReadonlyMap<number, readonly Bet[]> =>
  new Map(canaryShares.map((share) => [share, ratios.map((ratio) => betOn(share, ratio, other))]));

const harmBets = betsOn(HARM, 1);
const safeBets = betsOn(SAFE, UNSAFE);

/** Logarithm of the mean of all bets. Under a true null it exceeds log(1/a) with probability a at most. */
function logEvidence(bets: ReadonlyMap<number, readonly Bet[]>, counts: readonly ShareCounts[]): number {
  const players = bets.get(canaryShares[0])?.length ?? 0;
  const seen = counts.map(({ share, canary, stable }) => ({ bets: bets.get(share) ?? [], canary, stable }));
  let [top, sum] = [-Infinity, 0];
  for (let player = 0; player < players; player += 1) {
    let log = 0;
    for (const at of seen) {
      const bet = at.bets[player] as Bet;
      log += at.canary * bet.canary + at.stable * bet.stable;
    }
    sum = log > top ? sum * Math.exp(top - log) + 1 : sum + Math.exp(log - top);
    top = Math.max(top, log);
  }
  return top + Math.log(sum / players);
}

export const logHarm = (counts: readonly ShareCounts[]): number => logEvidence(harmBets, counts);
export const logSafe = (counts: readonly ShareCounts[]): number => logEvidence(safeBets, counts);

/**
 * Judges the counts. `alpha`: rate at which a canary that is no worse may fail. `beta`: rate at which one
 * that is 1.5 times worse may pass.
 */
export function evaluateRates(counts: readonly ShareCounts[], alpha: number, beta: number): Verdict {
  if (logHarm(counts) >= -Math.log(alpha)) return 'FAIL';
  return logSafe(counts) >= -Math.log(beta) ? 'PASS' : 'INCONCLUSIVE';
}
