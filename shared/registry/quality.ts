// Compares the word errors of a revision with those of its predecessor on the same recordings. Resampling
// draws speakers, because utterances of one speaker are correlated: a bound that takes them for independent
// is far too narrow.
import { z } from 'zod';
import { seeded } from './seeded.ts';
import type { Verdict } from './verdict.ts';

/**
 * Speakers of a test set: with 50 an equal revision passes only three times in four, since speakers differ
 * more than revisions.
 */
export const QUALITY_SPEAKERS = 100;
/** Utterances of each speaker in a test set. */
export const QUALITY_UTTERANCES = 20;
/**
 * Tolerated increase of word errors relative to the previous revision: 2,000 utterances cannot show less than
 * noise.
 */
const QUALITY_MARGIN = 0.1;
/**
 * Tolerated increase of word errors as a share of all words: a tenth of nearly no errors would be a margin
 * that no revision meets.
 */
const QUALITY_MARGIN_FLOOR = 0.002;
/** Resamples of a bootstrap: the 2.5 % in the tail are then 25 of them. */
const QUALITY_RESAMPLES = 1_000;
/**
 * Tail of the deciding bound: at 5 % the percentile bootstrap passes 7 to 11 % of the revisions it should
 * stop.
 */
const QUALITY_TAIL = 0.025;

/** Totals of one speaker's recordings: words of the reference, and errors of the two revisions. */
export const speakerErrors = z.object({
  utterances: z.number().int().positive(),
  words: z.number().int().positive(),
  before: z.number().int().nonnegative(),
  after: z.number().int().nonnegative(),
});
export type SpeakerErrors = z.infer<typeof speakerErrors>;

export interface QualityVerdict {
  readonly verdict: Verdict;
  /** Word error rates of the two revisions. */
  readonly before: number;
  readonly after: number;
  /** Bounds of the excess over the margin, as a rate of words: wholly below 0 passes, wholly above fails. */
  readonly low: number;
  readonly high: number;
}

export interface QualityRule {
  readonly margin: number;
  readonly tail: number;
  readonly speakers: number;
  readonly utterances: number;
}

export const qualityRule: QualityRule = {
  margin: QUALITY_MARGIN,
  tail: QUALITY_TAIL,
  speakers: QUALITY_SPEAKERS,
  utterances: QUALITY_UTTERANCES,
};

interface Sums {
  readonly words: number;
  readonly before: number;
  readonly after: number;
}

/** Returns the excess over the margin, as a rate of words. */
const excess = ({ words, before, after }: Sums, margin: number): number =>
  (after - before - Math.max(margin * before, QUALITY_MARGIN_FLOOR * words)) / words;

export function evaluateQuality(
  speakers: readonly SpeakerErrors[],
  seed: number,
  rule: QualityRule = qualityRule,
): QualityVerdict {
  const all = speakers.reduce(
    (sum, one) => ({
      words: sum.words + one.words,
      before: sum.before + one.before,
      after: sum.after + one.after,
    }),
    { words: 0, before: 0, after: 0 },
  );
  if (all.words === 0) return { verdict: 'INCONCLUSIVE', before: 0, after: 0, low: 0, high: 0 };
  const found = resample(speakers, seed, rule.margin);
  const tail = Math.floor(rule.tail * found.length);
  const [low, high] = [found[tail] as number, found[found.length - 1 - tail] as number];
  const rates = { before: all.before / all.words, after: all.after / all.words, low, high };
  if (!isEnough(speakers, rule)) return { verdict: 'INCONCLUSIVE', ...rates };
  if (high < 0) return { verdict: 'PASS', ...rates };
  return { verdict: low > 0 ? 'FAIL' : 'INCONCLUSIVE', ...rates };
}

/** Few speakers say little about others, however narrow the bounds look. */
export const isEnough = (speakers: readonly SpeakerErrors[], rule: QualityRule = qualityRule): boolean =>
  speakers.length >= rule.speakers && speakers.every(({ utterances }) => utterances >= rule.utterances);

/** Returns the sorted excesses of resampled sets of speakers. */
function resample(speakers: readonly SpeakerErrors[], seed: number, margin: number): Float64Array {
  const random = seeded(seed);
  const words = Float64Array.from(speakers, (one) => one.words);
  const before = Float64Array.from(speakers, (one) => one.before);
  const after = Float64Array.from(speakers, (one) => one.after);
  const found = new Float64Array(QUALITY_RESAMPLES);
  for (let draw = 0; draw < found.length; draw += 1) {
    const sums = { words: 0, before: 0, after: 0 };
    for (let place = 0; place < words.length; place += 1) {
      const at = Math.floor(random() * words.length);
      sums.words += words[at] as number;
      sums.before += before[at] as number;
      sums.after += after[at] as number;
    }
    found[draw] = excess(sums, margin);
  }
  return found.sort();
}
