// Counts of live traffic on one revision. They only grow, so reports can repeat and sum in any order. They
// hold no text and no audio.
import { z } from 'zod';
import { MIRROR_WORDS_MAX } from './limits.ts';

/** Streams of a revision that an agent can have counted since its start: 30 each second for a year. */
export const LIVE_REPORT_STREAMS_MAX = 1_000_000_000;
/** Quantile of the previous revision above which a stream is slow: further out there are too few streams. */
export const LIVE_QUANTILE = 0.95;

const safe = z.number().int().nonnegative();

/** Four buckets to a doubling: each ends a fifth above the one before, the first at 1 ms, the last but one after two minutes. */
const PER_DOUBLING = 4;
export const LATENCY_BUCKETS = 69;

/** Ends of the buckets of disagreement, as a share of the words; the first is for streams in which none differs. */
export const DISAGREEMENT_ENDS = [0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1] as const;

/** Histograms list bucket counts from the lowest; missing ones at the end are 0. */
const countsOf = (count: typeof safe, words: typeof safe) =>
  z.object({
    /** Ended streams, except those that ended for a reason outside the revision. */
    streams: count,
    /** Streams that the engine or the agent broke. */
    failed: count,
    /** Streams with speech that gave no word. */
    empty: count,
    /**
     * Processing time per second of audio of the remaining streams, ms, without waits for the caller's bytes,
     * so that long and short recordings compare.
     */
    latency: z.array(count).max(LATENCY_BUCKETS),
    /** Mirrored streams by the share of words that differ from the served answer. */
    differing: z.array(count).max(DISAGREEMENT_ENDS.length).optional(),
    /** Words served on mirrored streams, and words that differ. */
    words: words.optional(),
    errors: words.optional(),
  });

/** Sums, which stay within safe integers (`addUp`). */
export const liveCounts = countsOf(safe, safe);
export type LiveCounts = z.infer<typeof liveCounts>;

/** Counts of one agent, bounded. */
export const reportedCounts = countsOf(
  safe.max(LIVE_REPORT_STREAMS_MAX),
  safe.max(LIVE_REPORT_STREAMS_MAX * MIRROR_WORDS_MAX),
);

export const noCounts: LiveCounts = { streams: 0, failed: 0, empty: 0, latency: [] };

export function bucketOfLatency(milliseconds: number): number {
  const at = Math.ceil(PER_DOUBLING * Math.log2(Math.max(1, milliseconds)));
  return Math.min(at, LATENCY_BUCKETS - 1);
}

/** Upper end of a bucket, ms. */
export const endOfBucket = (bucket: number): number => 2 ** (bucket / PER_DOUBLING);

/** Lower end of the bucket that ends at `end`, ms. */
export const leastInBucketTo = (end: number): number => end / 2 ** (1 / PER_DOUBLING);

/** Returns the bucket of `share`, the differing words over the served words. */
export function bucketOfDisagreement(share: number): number {
  const at = DISAGREEMENT_ENDS.findIndex((end) => share <= end);
  return at < 0 ? DISAGREEMENT_ENDS.length - 1 : at;
}

/** One ended stream. */
export interface LiveStream {
  readonly outcome: 'served' | 'failed' | 'empty';
  /** Processing time per second of audio. */
  readonly milliseconds: number;
  /** Present on a mirrored stream that did not fail. */
  readonly compared?: { readonly words: number; readonly errors: number };
}

export function countStream(counts: LiveCounts, { outcome, milliseconds, compared }: LiveStream): LiveCounts {
  const one: LiveCounts = {
    streams: 1,
    failed: outcome === 'failed' ? 1 : 0,
    empty: outcome === 'empty' ? 1 : 0,
    latency: outcome === 'served' ? single(bucketOfLatency(milliseconds)) : [],
    ...(compared && {
      differing: single(bucketOfDisagreement(compared.errors / Math.max(1, compared.words))),
      words: compared.words,
      errors: compared.errors,
    }),
  };
  return addCounts(counts, one);
}

const single = (at: number): number[] => [...Array<number>(at).fill(0), 1];

/** Adds, and saturates at the largest safe integer, so that no agent's counts make an unreadable sum. */
export const addUp = (a: number, b: number): number => Math.min(Number.MAX_SAFE_INTEGER, a + b);

export const addCounts = (one: LiveCounts, other: LiveCounts): LiveCounts => combine(one, other, addUp);

/**
 * Returns the counts after `before`, never negative: an agent that restarts from 0 has lost its earlier
 * counts.
 */
export const countsSince = (now: LiveCounts, before: LiveCounts): LiveCounts =>
  combine(now, before, (a, b) => Math.max(0, a - b));

function combine(one: LiveCounts, other: LiveCounts, of: (a: number, b: number) => number): LiveCounts {
  const lists = (a: readonly number[] = [], b: readonly number[] = []) =>
    Array.from({ length: Math.max(a.length, b.length) }, (_, at) => of(a[at] ?? 0, b[at] ?? 0));
  const compared = one.differing ?? other.differing;
  return {
    streams: of(one.streams, other.streams),
    failed: of(one.failed, other.failed),
    empty: of(one.empty, other.empty),
    latency: lists(one.latency, other.latency),
    ...(compared && {
      differing: lists(one.differing, other.differing),
      words: of(one.words ?? 0, other.words ?? 0),
      errors: of(one.errors ?? 0, other.errors ?? 0),
    }),
  };
}

const sum = (list: readonly number[]): number => list.reduce(addUp, 0);

/** Returns the bucket of the quantile `share` (0 to 1); `undefined` for an empty histogram. */
export function quantileBucket(latency: readonly number[], share: number): number | undefined {
  let left = share * sum(latency);
  if (left === 0) return undefined;
  const found = latency.findIndex((many) => {
    left -= many;
    return left <= 0;
  });
  return found < 0 ? latency.length - 1 : found;
}

/** The 95th percentile, ms: the end of its bucket, which is at most a fifth too high. */
export function p95Of({ latency }: LiveCounts): number | undefined {
  const bucket = quantileBucket(latency, LIVE_QUANTILE);
  return bucket === undefined ? undefined : endOfBucket(bucket);
}

/** Counts streams that are slower than `bucket`, failed or empty. */
export const badIn = ({ latency, failed, empty }: LiveCounts, bucket: number): number =>
  sum([failed, empty, ...latency.slice(bucket + 1)]);
