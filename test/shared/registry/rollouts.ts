// Simulated rollouts: streams of two revisions with known rates of bad streams.
import {
  beginCanary,
  CANARY_STREAMS,
  type CanaryRun,
  decideCanary,
  evaluateCanary,
  stepUp,
} from '../../../shared/registry/canary.ts';
import { evaluateRates, type ShareCounts } from '../../../shared/registry/rates.ts';
import type { Verdict } from '../../../shared/registry/verdict.ts';

export interface Ended {
  readonly verdict: Verdict;
  /** Streams that the canary had served by then. */
  readonly streams: number;
}

interface CountedStream {
  readonly cohort: 'canary' | 'stable';
  readonly bad: boolean;
  readonly failed: boolean;
}

/** Adds one bad stream. */
function countBad(counts: readonly ShareCounts[], share: ShareCounts['share'], side: 'canary' | 'stable') {
  const known = counts.some((one) => one.share === share);
  const all: readonly ShareCounts[] = known ? counts : [...counts, { share, canary: 0, stable: 0 }];
  return all.map((one) => (one.share === share ? { ...one, [side]: one[side] + 1 } : one));
}

/** Counts an ended stream of either cohort. Call it once for each stream. */
export function addStream(run: CanaryRun, { cohort, bad, failed }: CountedStream): CanaryRun {
  const streams = run.streams + (cohort === 'canary' ? 1 : 0);
  if (!bad && !failed) return { ...run, streams };
  const next = {
    ...run,
    streams,
    bad: countBad(run.bad, run.share, cohort),
    failed: failed ? countBad(run.failed, run.share, cohort) : run.failed,
  };
  return evaluateCanary(next) === 'FAIL' ? { ...next, worst: 'FAIL' } : next;
}

/** Shares and how many streams pass at each, as in the tables that these simulations reproduce. */
export const PLAN = [
  [0.05, 4_000],
  [0.25, 6_000],
  [0.5, 10_000],
] as const;

/**
 * Runs one judge after every bad stream: `rate` of bad streams without the canary, `ratio` times that with
 * it.
 */
export function judgeOne(random: () => number, rate: number, ratio: number, times: number): Ended {
  const counts: { share: ShareCounts['share']; canary: number; stable: number }[] = [];
  let streams = 0;
  for (const [share, many] of PLAN) {
    const here = { share, canary: 0, stable: 0 };
    counts.push(here);
    for (let at = 0; at < many * times; at += 1) {
      const cohort = random() < share ? 'canary' : 'stable';
      if (cohort === 'canary') streams += 1;
      if (random() >= (cohort === 'canary' ? rate * ratio : rate)) continue;
      here[cohort] += 1;
      const verdict = evaluateRates(counts, 0.02, 0.05);
      if (verdict !== 'INCONCLUSIVE') return { verdict, streams };
    }
  }
  return { verdict: 'INCONCLUSIVE', streams };
}

export type RolledOut = 'full' | 'rolled back' | 'asked';

interface World {
  readonly bad: number;
  readonly failed: number;
  /** Ratios of the canary. */
  readonly slower: number;
  readonly breaks: number;
}

/** Milliseconds between two streams: a day at one share has 86,400 of them. */
const APART_MS = 1_000;
const DAY_MS = 86_400_000;

/** Runs a whole canary: 1, 5, 10, 25 and 50 %, both metrics, at most a day at each share. */
export function rollOut(random: () => number, { bad, failed, slower, breaks }: World): RolledOut {
  let run: CanaryRun = beginCanary(0);
  for (let now = 0; ; now += APART_MS) {
    const cohort = random() < run.share ? 'canary' : 'stable';
    const isFailed = random() < (cohort === 'canary' ? failed * breaks : failed);
    const isBad = isFailed || random() < (cohort === 'canary' ? bad * slower : bad);
    run = addStream(run, { cohort, bad: isBad, failed: isFailed });
    // The decision can change with harm, with enough streams and with time; afterwards with each bad stream.
    const enough = run.streams >= CANARY_STREAMS && (isBad || cohort === 'canary');
    if (run.worst !== 'FAIL' && !(enough && (isBad || run.share !== 0.5)) && now - run.since <= DAY_MS) continue;
    const { move } = decideCanary(run, now);
    if (move === 'roll-back') return 'rolled back';
    if (move === 'promote') return 'full';
    if (move === 'ask') return 'asked';
    if (move === 'step-up') run = stepUp(run, now);
  }
}
