// Trial of a revision on live traffic: observations since it came to its stage, and their verdict at its
// gate. Plain data: every holder of the counts reaches the same result.
import { z } from 'zod';
import { beginCanary, type CanaryRun, canaryRun, evaluateCanary, stepUp } from '../../shared/registry/canary.ts';
import { type Evidence, evaluateEvidence } from '../../shared/registry/evidence.ts';
import {
  addCounts,
  addUp,
  badIn,
  LIVE_QUANTILE,
  type LiveCounts,
  liveCounts,
  noCounts,
  quantileBucket,
} from '../../shared/registry/live-counts.ts';
import type { ShareCounts } from '../../shared/registry/rates.ts';
import { type Standing, standing } from '../../shared/registry/stage.ts';
import type { Verdict } from '../../shared/registry/verdict.ts';

/**
 * Delay after a revision moves before its streams count: every edge has the release and every agent has
 * reported by then.
 */
export const LIVE_SETTLE_S = 15;
/** Streams of the previous revision that define slow: the 95th percentile of fewer is too uncertain. */
export const LIVE_BASELINE_STREAMS = 1_000;

export const trial = z.discriminatedUnion('stage', [
  z.object({ stage: z.literal('grey'), since: z.number().int(), mirrored: liveCounts }),
  z.object({
    stage: z.literal('canary'),
    since: z.number().int(),
    run: canaryRun,
    /** The bucket above which a stream is slow, once enough is known of the revision before: it stays for all shares. */
    slow: z.number().int().nonnegative().optional(),
  }),
]);
export type Trial = z.infer<typeof trial>;

export const isUnderWay = ({ stage }: Standing): boolean => stage === 'grey' || stage === 'canary';

/** Begins a trial. `usual`: earlier counts of the serving revision. `undefined` in stages without a trial. */
export function beginTrial({ stage, share }: Standing, since: number, usual: LiveCounts = noCounts): Trial | undefined {
  if (stage === 'grey') return { stage, since, mirrored: noCounts };
  if (stage !== 'canary' || share === undefined) return undefined;
  return { stage, since, run: { ...beginCanary(since), share }, ...slowAfter(usual) };
}

/** Returns no bound while the baseline is too small. */
function slowAfter({ latency }: LiveCounts): { readonly slow?: number } {
  const timed = latency.reduce((sum, many) => sum + many, 0);
  const slow = timed < LIVE_BASELINE_STREAMS ? undefined : quantileBucket(latency, LIVE_QUANTILE);
  return slow === undefined ? {} : { slow };
}

/** Follows a change of stage: a higher share keeps the observations; every other change starts over. */
export function followStanding(known: Trial | undefined, now: Standing, since: number, usual: LiveCounts) {
  if (known?.since === since) return known;
  const more = known?.stage === 'canary' && now.stage === 'canary' && (now.share ?? 0) > known.run.share;
  if (!more) return beginTrial(standing.parse(now), since, usual);
  return { ...known, since, run: stepUp(known.run, since) } satisfies Trial;
}

/**
 * Reports whether the revision came to its stage too recently to count: edges learn of it within seconds, and
 * agents' counts are as old as their last report.
 */
export const isSettling = ({ since }: Trial, now: number): boolean => now - since < LIVE_SETTLE_S * 1_000;

/**
 * New counts of both sides: of the trial, and of the serving revision in zones where the trial could be
 * chosen.
 */
export interface TrialCounts {
  readonly trial: { readonly served: LiveCounts; readonly mirrored: LiveCounts };
  readonly stable: LiveCounts;
  /** All known counts of the serving revision. */
  readonly usual: LiveCounts;
}

export function addCountsToTrial(known: Trial, { trial: own, stable, usual }: TrialCounts): Trial {
  if (known.stage === 'grey') return { ...known, mirrored: addCounts(known.mirrored, own.mirrored) };
  const { run, slow } = known;
  // Streams that define the bound are not judged by it.
  if (slow === undefined) return { ...known, ...slowAfter(usual) };
  const both = { canary: own.served, stable };
  const next: CanaryRun = {
    ...run,
    streams: addUp(run.streams, own.served.streams),
    bad: countMore(run, 'bad', { canary: badIn(both.canary, slow), stable: badIn(both.stable, slow) }),
    failed: countMore(run, 'failed', { canary: both.canary.failed, stable: both.stable.failed }),
  };
  return { ...known, run: evaluateCanary(next) === 'FAIL' ? { ...next, worst: 'FAIL' } : next };
}

function countMore(run: CanaryRun, what: 'bad' | 'failed', more: Omit<ShareCounts, 'share'>): ShareCounts[] {
  const { share } = run;
  if (more.canary + more.stable === 0) return run[what];
  const here = run[what].find((one) => one.share === share) ?? { share, canary: 0, stable: 0 };
  const next = { share, canary: addUp(here.canary, more.canary), stable: addUp(here.stable, more.stable) };
  return [...run[what].filter((one) => one.share !== share), next];
}

const TOOL = 'live traffic';

/** Returns the evidence in the form of a statement. */
export function evidenceOf(known: Trial): Evidence[] {
  if (known.stage === 'canary') return [{ kind: 'rates', tool: TOOL, run: known.run }];
  const { streams, failed, empty, differing = [], words = 0, errors = 0 } = known.mirrored;
  const compared = differing.reduce(addUp, 0);
  return [
    { kind: 'stability', tool: TOOL, streams, crashes: failed },
    {
      kind: 'disagreement',
      tool: TOOL,
      // The buckets decide, not this field.
      verdict: 'INCONCLUSIVE',
      streams: compared,
      facts: { words, errors, empty },
      differing,
    },
  ];
}

export function evaluateTrial(known: Trial, now: number): Verdict {
  const verdicts = evidenceOf(known).map((one) => evaluateEvidence(one, now));
  if (verdicts.includes('FAIL')) return 'FAIL';
  return verdicts.every((one) => one === 'PASS') ? 'PASS' : 'INCONCLUSIVE';
}
