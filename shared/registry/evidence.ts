// Evidence for a revision at a gate. Measurements are sent as counts and evaluated again by every reader: a
// signature says who measured, not that the verdict is right.
import { z } from 'zod';
import { canaryRun, decideCanary } from './canary.ts';
import { evaluateDisagreement, GREY_STREAMS } from './disagreement.ts';
import { DISAGREEMENT_ENDS } from './live-counts.ts';
import { evaluateQuality, isEnough, type SpeakerErrors, speakerErrors } from './quality.ts';
import { method } from './rollout.ts';
import type { Miss, Sla } from './sla.ts';
import { type Verdict, verdict } from './verdict.ts';

/** Speakers whose counts a statement may carry: with 60 bytes each it stays one row of the table. */
export const MODEL_SPEAKERS_MAX = 1_000;

const facts = z.record(z.string().max(64), z.union([z.string().max(512), z.number(), z.boolean()])).default({});
const named = { tool: z.string().max(128).describe('Measuring tool and its version') };
const milliseconds = z.number().nonnegative();

export const evidence = z.discriminatedUnion('kind', [
  /**
   * Findings that only an inspection can give, on the word of the inspector: security, loading, differences
   * of mirrored answers.
   */
  z.object({ kind: z.literal('scan'), ...named, verdict, facts }),
  z.object({ kind: z.literal('load'), ...named, verdict, facts }),
  z.object({
    kind: z.literal('disagreement'),
    ...named,
    verdict,
    streams: z.number().int().nonnegative(),
    facts,
    /** Streams by disagreement bucket (`live-counts.ts`). When present, they decide instead of `verdict`. */
    differing: z.array(z.number().int().nonnegative()).max(DISAGREEMENT_ENDS.length).optional(),
  }),
  /** Mirrored streams, and how many of them crashed. */
  z.object({
    kind: z.literal('stability'),
    ...named,
    streams: z.number().int().nonnegative(),
    crashes: z.number().int().nonnegative(),
  }),
  /** The 95th percentile in one window after the other, under the load that was promised. */
  z.object({
    kind: z.literal('latency'),
    ...named,
    sla: milliseconds.positive(),
    windows: z.array(milliseconds).max(100),
  }),
  /** Word errors of one language; `set` names recordings and normalisation by a digest. */
  z.object({
    kind: z.literal('quality'),
    ...named,
    language: z.string().max(35),
    set: z.string().max(128),
    seed: z.number().int().nonnegative(),
    speakers: z.array(speakerErrors).max(MODEL_SPEAKERS_MAX),
    /** The recordings were heard as live streams. */
    streamed: z.literal(true).optional(),
  }),
  z.object({ kind: z.literal('rates'), ...named, run: canaryRun }),
  /**
   * Additional memory of the engine since it loaded the revision; judged against the promise, if there is
   * one.
   */
  z.object({ kind: z.literal('memory'), ...named, bytes: z.number().int().nonnegative() }),
  /** Result of a quantisation: a worker's FAIL says that it could not be made. */
  z.object({ kind: z.literal('quantise'), ...named, method, verdict, facts }),
]);
export type Evidence = z.infer<typeof evidence>;
export type EvidenceKind = Evidence['kind'];

type Judges = { readonly [Kind in EvidenceKind]: (one: Extract<Evidence, { kind: Kind }>, now: number) => Verdict };

const judges: Judges = {
  scan: ({ verdict: stated }) => stated,
  load: ({ verdict: stated }) => stated,
  disagreement: ({ verdict: stated, streams, differing }) => {
    if (differing) return evaluateDisagreement(differing);
    return stated === 'PASS' && streams < GREY_STREAMS ? 'INCONCLUSIVE' : stated;
  },
  stability: ({ streams, crashes }) => {
    if (crashes > 0) return 'FAIL';
    return streams >= GREY_STREAMS ? 'PASS' : 'INCONCLUSIVE';
  },
  latency: ({ sla, windows }) => judgeLatency(sla, windows),
  quality: ({ speakers, seed }) => evaluateQuality(speakers, seed).verdict,
  rates: ({ run }, now) => decideCanary(run, now).verdict,
  memory: () => 'PASS',
  quantise: ({ verdict: stated }) => stated,
};

export const evaluateEvidence = (one: Evidence, now: number): Verdict =>
  (judges[one.kind] as (one: Evidence, now: number) => Verdict)(one, now);

/** Number of last windows that must agree, and the ratio within which they must. */
const STEADY = 3;
const WITHIN = 1.1;

const lastOf = (windows: readonly number[]): readonly number[] => windows.slice(-STEADY);

/** Reports whether the last windows agree; a measurement continues until they do. */
export function isSteady(windows: readonly number[]): boolean {
  const last = lastOf(windows);
  return last.length === STEADY && Math.max(...last) <= WITHIN * Math.min(...last);
}

/** The slowest of the windows that are judged, ms. */
export const slowestOf = (windows: readonly number[]): number => Math.max(...lastOf(windows));

function judgeLatency(sla: number, windows: readonly number[]): Verdict {
  // Windows that differ still fail when none of them keeps the promise.
  const last = lastOf(windows);
  if (last.length === STEADY && last.every((window) => window > sla)) return 'FAIL';
  if (!isSteady(windows)) return 'INCONCLUSIVE';
  return slowestOf(windows) <= sla ? 'PASS' : 'FAIL';
}

/** Applies the promised latency when the measurement was judged against a laxer one. */
export const underPromise = (one: Evidence, promised: Sla | undefined): Evidence =>
  one.kind === 'latency' && promised?.latencyMs !== undefined
    ? { ...one, sla: Math.min(one.sla, promised.latencyMs) }
    : one;

/** Returns the promises that the evidence shows as missed; an inconclusive measurement is no miss. */
export function findMisses(promised: Sla, all: readonly Evidence[], now: number): Miss[] {
  return all.flatMap((sent): Miss[] => {
    const one = underPromise(sent, promised);
    if (one.kind === 'latency' && promised.latencyMs !== undefined && evaluateEvidence(one, now) === 'FAIL') {
      const found = slowestOf(one.windows);
      return found > promised.latencyMs ? [{ of: 'latencyMs', promised: promised.latencyMs, found }] : [];
    }
    if (one.kind === 'memory' && promised.memoryBytes !== undefined && one.bytes > promised.memoryBytes) {
      return [{ of: 'memoryBytes', promised: promised.memoryBytes, found: one.bytes }];
    }
    if (one.kind === 'quality' && promised.wordErrors !== undefined && isEnough(one.speakers)) {
      const found = errorRate(one.speakers);
      return found > promised.wordErrors ? [{ of: 'wordErrors', promised: promised.wordErrors, found }] : [];
    }
    return [];
  });
}

const errorRate = (speakers: readonly SpeakerErrors[]): number =>
  speakers.reduce((sum, { after }) => sum + after, 0) / speakers.reduce((sum, { words }) => sum + words, 0);
