import type { Reason } from '../../../../shared/refusal.ts';
import { compareAnswers } from '../../../../shared/registry/compare-answers.ts';
import type { LiveStream } from '../../../../shared/registry/live-counts.ts';
import type { Result } from '../../../../shared/result.ts';
import { joinWords } from '../../../../shared/speech/words.ts';
import type { RecordingTotals } from '../asr/vad/listen.ts';

/** Speech that must yield a word: a cough or a door is shorter. */
const LIVE_SPEECH_S = 0.5;

/** Notes of one recording for the counts of its revision. */
export interface Tally {
  readonly began: number;
  /** It is a recording: what a revision takes for it can be compared. */
  isRecording: boolean;
  /** Time in which the caller's bytes had not come yet, ms. */
  waited: number;
  totals: RecordingTotals | undefined;
  segments: number;
  /** A mirrored copy: the transcript that callers got, and the one of this revision, which no caller gets. */
  copy: { readonly served: string; readonly texts: string[] } | undefined;
}

export const newTally = (began: number): Tally => ({
  began,
  isRecording: false,
  waited: 0,
  totals: undefined,
  segments: 0,
  copy: undefined,
});

/** Refusals that are the revision's own. Others are the caller's, or for want of room: then it was no stream at all. */
const OWN: ReadonlySet<Reason> = new Set(['engine_failed', 'internal', 'deadline_passed']);

/** `undefined` when nothing can be said of the revision. */
export function streamOf(tally: Tally, outcome: Result<unknown>, now: number): LiveStream | undefined {
  const { isRecording, began, waited, totals, segments, copy } = tally;
  if (!isRecording) return undefined;
  if (!outcome.ok) return OWN.has(outcome.refusal.reason) ? { outcome: 'failed', milliseconds: 0 } : undefined;
  if (!totals) return undefined;
  const compared = copy && compareAnswers(copy.served, joinWords(copy.texts));
  const isEmpty = segments === 0 && (compared ? compared.words > 0 : totals.speechSeconds >= LIVE_SPEECH_S);
  return {
    outcome: isEmpty ? 'empty' : 'served',
    // A recording under a second counts as one: most of its time is the fixed cost of a request.
    milliseconds: Math.max(0, now - began - waited) / Math.max(1, totals.seconds),
    ...(compared && { compared }),
  };
}
