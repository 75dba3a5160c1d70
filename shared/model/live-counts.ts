// What live traffic came to with one revision: numbers that grow, so that they can be told again and again and be added up
// in any order. No text and no sound is among them.
import { z } from 'zod';
import { limits } from '../limits.ts';

const safe = z.number().int().nonnegative();

/** Four buckets to a doubling: each ends a fifth above the one before, the first at 1 ms, the last but one after two minutes. */
const PER_DOUBLING = 4;
export const LATENCY_BUCKETS = 69;

/** Ends of the buckets of disagreement, as a share of the words; the first is for streams in which none differs. */
export const DISAGREEMENT_ENDS = [0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1] as const;

/** Histograms are counts of buckets, the lowest first; what is missing at the end is 0. */
const countsOf = (count: typeof safe, words: typeof safe) =>
  z.object({
    /** Streams that ended, for whatever reason is the revision's own. */
    streams: count,
    /** Those of them that the engine or the agent broke. */
    failed: count,
    /** Those in which somebody spoke, and no word came of it. */
    empty: count,
    /**
     * How long a second of sound took in each of the others, ms, without the time in which they waited for the caller's
     * bytes: long recordings and short ones can be compared.
     */
    latency: z.array(count).max(LATENCY_BUCKETS),
    /** Of mirrored ones: streams by the share of words in which they differ from what was served. */
    differing: z.array(count).max(DISAGREEMENT_ENDS.length).optional(),
    /** Of mirrored ones: words that were served, and words in which the two differ. */
    words: words.optional(),
    errors: words.optional(),
  });

/** Sums, which never get too large to be read again (`addUp`). */
export const liveCounts = countsOf(safe, safe);
export type LiveCounts = z.infer<typeof liveCounts>;

/** What one agent can have counted. */
export const toldCounts = countsOf(
  safe.max(limits.liveReportStreams.value),
  safe.max(limits.liveReportStreams.value * limits.mirrorWords.value),
);

export const noCounts: LiveCounts = { streams: 0, failed: 0, empty: 0, latency: [] };

export function bucketOfLatency(milliseconds: number): number {
  const at = Math.ceil(PER_DOUBLING * Math.log2(Math.max(1, milliseconds)));
  return Math.min(at, LATENCY_BUCKETS - 1);
}

/** Where a bucket ends, ms. */
export const endOfBucket = (bucket: number): number => 2 ** (bucket / PER_DOUBLING);

/** Where the bucket begins that ends there, ms. */
export const leastInBucketTo = (end: number): number => end / 2 ** (1 / PER_DOUBLING);

/** `share`: words that differ, of those that were served. */
export function bucketOfDisagreement(share: number): number {
  const at = DISAGREEMENT_ENDS.findIndex((end) => share <= end);
  return at < 0 ? DISAGREEMENT_ENDS.length - 1 : at;
}

/** One stream that ended. */
export interface LiveStream {
  readonly outcome: 'served' | 'failed' | 'empty';
  /** For a second of sound. */
  readonly milliseconds: number;
  /** Of a mirrored one that did not fail. */
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

/** A sum stops where numbers are no longer exact: nobody's counts make one that cannot be kept. */
export const addUp = (a: number, b: number): number => Math.min(Number.MAX_SAFE_INTEGER, a + b);

export const addCounts = (one: LiveCounts, other: LiveCounts): LiveCounts => combine(one, other, addUp);

/** What came after `before`. Never less than nothing: who counts again from nothing has lost what was before. */
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

/** The bucket in which that quantile lies, 0 to 1; `undefined` of nothing. */
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
  const bucket = quantileBucket(latency, limits.liveQuantile.value);
  return bucket === undefined ? undefined : endOfBucket(bucket);
}

/** Streams slower than that bucket, failed, or empty. */
export const badIn = ({ latency, failed, empty }: LiveCounts, bucket: number): number =>
  sum([failed, empty, ...latency.slice(bucket + 1)]);
