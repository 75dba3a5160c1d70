// State of a canary across its shares, and the decision on the next move. Plain data, so that it can be
// stored, signed as evidence and evaluated again by any reader.
import { z } from 'zod';
import { CANARY_ALPHA, CANARY_BETA } from './limits.ts';
import { evaluateRates, logHarm, shareCounts } from './rates.ts';
import { canaryShare, canaryShares } from './stage.ts';
import { type Verdict, verdict } from './verdict.ts';

/** Streams that a revision serves at each share before the next: its first exposure to that load. */
export const CANARY_STREAMS = 300;
/** Time at one share without a verdict before an operator decides: traffic repeats itself each day. */
export const CANARY_STEP_S = 86_400;

export const canaryRun = z.object({
  share: canaryShare,
  /** Start of this share, ms since 1970. */
  since: z.number().int().nonnegative(),
  /** Streams that the canary has served at this share. */
  streams: z.number().int().nonnegative(),
  /** Streams slower than the 95th percentile of the revision before, or failed, or empty. */
  bad: z.array(shareCounts).max(canaryShares.length),
  /** Failed streams among `bad`: too few to show among the slow ones, and worse. */
  failed: z.array(shareCounts).max(canaryShares.length),
  /** Worst verdict so far: a FAIL is final. */
  worst: verdict,
});
export type CanaryRun = z.infer<typeof canaryRun>;

/** Share of the false-alarm budget that each of the two metrics gets. */
const ALPHA = CANARY_ALPHA / 2;

export const beginCanary = (now: number): CanaryRun => ({
  share: canaryShares[0],
  since: now,
  streams: 0,
  bad: [],
  failed: [],
  worst: 'INCONCLUSIVE',
});

const isHarmful = ({ bad, failed }: CanaryRun): boolean =>
  logHarm(bad) >= -Math.log(ALPHA) || logHarm(failed) >= -Math.log(ALPHA);

/** Evaluates the run over all shares. */
export function evaluateCanary(run: CanaryRun): Verdict {
  if (run.worst === 'FAIL' || isHarmful(run)) return 'FAIL';
  return evaluateRates(run.bad, ALPHA, CANARY_BETA);
}

export type CanaryMove = 'roll-back' | 'step-up' | 'promote' | 'hold' | 'ask';

/**
 * Decides the next move. A higher share is no promotion: it needs enough streams and no harm. Promotion to
 * all traffic needs a PASS; without one the last share continues, and after `CANARY_STEP_S` a person is
 * asked.
 */
export function decideCanary(run: CanaryRun, now: number): { readonly move: CanaryMove; readonly verdict: Verdict } {
  const found = evaluateCanary(run);
  if (found === 'FAIL') return { move: 'roll-back', verdict: found };
  const seen = run.streams >= CANARY_STREAMS;
  const last = run.share === canaryShares.at(-1);
  if (seen && !last) return { move: 'step-up', verdict: found };
  if (seen && found === 'PASS') return { move: 'promote', verdict: found };
  const late = now - run.since > CANARY_STEP_S * 1_000;
  return { move: late ? 'ask' : 'hold', verdict: found };
}

/** Starts the next share and keeps all counts of bad streams. */
export function stepUp(run: CanaryRun, now: number): CanaryRun {
  const next = canaryShares[canaryShares.indexOf(run.share) + 1];
  return next === undefined ? run : { ...run, share: next, since: now, streams: 0 };
}
