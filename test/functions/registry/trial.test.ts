// Verdicts from counts of live traffic, which agents may report in any order and any number of times.
import { describe, expect, it } from 'vitest';
import { openGate } from '../../../functions/registry/gate.ts';
import {
  addCountsToTrial,
  beginTrial,
  evaluateTrial,
  evidenceOf,
  followStanding,
  isSettling,
  LIVE_BASELINE_STREAMS,
  LIVE_SETTLE_S,
  type Trial,
} from '../../../functions/registry/trial.ts';
import { compareAnswers } from '../../../shared/registry/compare-answers.ts';
import { evaluateDisagreement, GREY_DISAGREEMENT } from '../../../shared/registry/disagreement.ts';
import { CANARY_ALPHA, CANARY_BETA, MIRROR_WORDS_MAX } from '../../../shared/registry/limits.ts';
import {
  addCounts,
  badIn,
  bucketOfDisagreement,
  bucketOfLatency,
  countStream,
  countsSince,
  endOfBucket,
  LATENCY_BUCKETS,
  type LiveCounts,
  type LiveStream,
  noCounts,
  p95Of,
} from '../../../shared/registry/live-counts.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import type { Standing } from '../../../shared/registry/stage.ts';
import type { GateStatement } from '../../../shared/registry/statement.ts';
import { firstSeed, runs, seeds } from '../../seeds.ts';
import { forGrey } from '../../shared/registry/people.ts';

const count = (streams: readonly LiveStream[]): LiveCounts => streams.reduce(countStream, noCounts);

const streamOf = (random: () => number, slower = 1, breaks = 0.005): LiveStream => ({
  outcome: random() < breaks ? 'failed' : random() < 0.005 ? 'empty' : 'served',
  // Lognormal, roughly: 60 ms for a second of sound, and a tail.
  milliseconds: slower * 60 * Math.exp(0.6 * (random() + random() + random() - 1.5)),
});

const copyOf = (random: () => number, share: number): LiveStream => {
  const words = 5 + Math.floor(random() * 20);
  const errors = Array.from({ length: words }, () => (random() < share ? 1 : 0) as number).reduce((a, b) => a + b, 0);
  return { outcome: 'served', milliseconds: 50, compared: { words, errors } };
};

describe('counts', () => {
  it('repeated, late and reordered reports neither add nor lose', () => {
    for (let seed = firstSeed; seed < firstSeed + runs(60, 600); seed += 1) {
      const random = seeded(seed);
      const streams = Array.from({ length: 30 }, () => (random() < 0.5 ? streamOf(random) : copyOf(random, 0.2)));
      let told = noCounts;
      let sum = noCounts;
      for (let at = 0; at <= streams.length; at += Math.floor(random() * 4)) {
        const now = count(streams.slice(0, at));
        sum = addCounts(sum, countsSince(now, told));
        told = now;
        if (at === streams.length) break;
      }
      sum = addCounts(sum, countsSince(count(streams), told));
      expect(addCounts(sum, noCounts), `seed ${seed}`).toEqual(count(streams));
      expect(countsSince(sum, sum).streams).toBe(0);
    }
  });

  it('a bucket is a fifth wide, and no value is out of range', () => {
    for (const milliseconds of [0, 0.4, 1, 1.1, 7, 99, 100, 12_345, 130_000]) {
      const end = endOfBucket(bucketOfLatency(milliseconds));
      expect(end).toBeGreaterThanOrEqual(milliseconds);
      if (milliseconds >= 1) expect(end).toBeLessThan(milliseconds * 1.2);
    }
    expect(bucketOfLatency(Number.MAX_VALUE)).toBe(LATENCY_BUCKETS - 1);
    expect([0, 0.01, 0.5, 1, 7].map(bucketOfDisagreement)).toEqual([0, 1, 7, 9, 9]);
  });

  it('the 95th percentile and slower streams', () => {
    const counts = count(
      Array.from({ length: 100 }, (_, at) => ({ outcome: 'served', milliseconds: at + 1 }) as const),
    );
    expect(p95Of(counts)).toBeGreaterThanOrEqual(95);
    expect(p95Of(counts)).toBeLessThan(95 * 1.2);
    expect(p95Of(noCounts)).toBeUndefined();
    expect(badIn({ ...counts, failed: 2, empty: 3 }, bucketOfLatency(1_000))).toBe(5);
    expect(badIn(counts, bucketOfLatency(50))).toBe(
      counts.latency.slice(bucketOfLatency(50) + 1).reduce((a, b) => a + b, 0),
    );
  });
});

describe('C7, M6: disagreement of mirrored answers', () => {
  it('compares words, not how they are written', () => {
    expect(compareAnswers('Turn left, at the Corner!', 'turn left at the corner')).toEqual({ words: 5, errors: 0 });
    expect(compareAnswers('one two three', 'one too three four')).toEqual({ words: 3, errors: 2 });
    expect(compareAnswers('', 'hello')).toEqual({ words: 0, errors: 1 });
    expect(compareAnswers('今天天气好', '今天天好')).toEqual({ words: 5, errors: 1 });
    const long = 'word '.repeat(MIRROR_WORDS_MAX * 2);
    expect(compareAnswers(long, '')).toEqual({ words: MIRROR_WORDS_MAX, errors: MIRROR_WORDS_MAX });
  });

  const rollouts = runs(200, 1_000);
  /** Judges after every stream at which the verdict may change. */
  function verdictsOf(share: number, streams: number): Record<string, number> {
    const found: Record<string, number> = { PASS: 0, FAIL: 0, INCONCLUSIVE: 0 };
    for (let seed = 1; seed <= rollouts; seed += 1) {
      const random = seeded(seed * 7_919);
      const differing: number[] = Array(10).fill(0);
      let verdict = 'INCONCLUSIVE';
      for (let at = 0; at < streams && verdict === 'INCONCLUSIVE'; at += 1) {
        const { words, errors } = copyOf(random, share).compared as { words: number; errors: number };
        const bucket = bucketOfDisagreement(errors / words);
        differing[bucket] = (differing[bucket] ?? 0) + 1;
        verdict = evaluateDisagreement(differing);
      }
      found[verdict] = (found[verdict] ?? 0) + 1;
    }
    return found;
  }

  it('a similar revision passes, a different one fails within 200', () => {
    expect(verdictsOf(0.02, 300).PASS).toBeGreaterThan(0.98 * rollouts);
    expect(verdictsOf(0.3, 200).FAIL).toBe(rollouts);
  });

  it('at the limit itself neither bound is broken, however often one looks', () => {
    const found = verdictsOf(GREY_DISAGREEMENT, 300);
    expect(found.FAIL).toBeLessThanOrEqual(CANARY_ALPHA * rollouts);
    expect(found.PASS).toBeLessThanOrEqual(CANARY_BETA * rollouts);
  });
});

const CANARY: Standing = { stage: 'canary', share: 0.25 };

/** A trial at 25 % of `total` streams, reported in windows of any length. */
function tryOut(random: () => number, slower: number, total: number, breaks = 0.005): Trial {
  const usual = count(Array.from({ length: 1.1 * LIVE_BASELINE_STREAMS }, () => streamOf(random)));
  let known = beginTrial(CANARY, 0, usual) as Trial;
  let news = { own: noCounts, stable: noCounts };
  for (let at = 0; at < total; at += 1) {
    if (random() < 0.25) news = { ...news, own: countStream(news.own, streamOf(random, slower, breaks)) };
    else news = { ...news, stable: countStream(news.stable, streamOf(random)) };
    if (random() < 0.02 || at === total - 1) {
      known = addCountsToTrial(known, { trial: { served: news.own, mirrored: noCounts }, stable: news.stable, usual });
      news = { own: noCounts, stable: noCounts };
      if (evaluateTrial(known, 1) === 'FAIL') break;
    }
  }
  return known;
}

describe('C7: a canary on live traffic', () => {
  const rollouts = runs(20, 200);
  const verdicts = (slower: number, breaks?: number) =>
    Array.from({ length: rollouts }, (_, at) => evaluateTrial(tryOut(seeded(at + 1), slower, 4_000, breaks), 1));
  const shareOf = (found: readonly string[], verdict: string) =>
    found.filter((one) => one === verdict).length / found.length;

  it('stops a slow and a crashing revision, but no equal one', { timeout: 60_000 }, () => {
    expect(shareOf(verdicts(1), 'FAIL')).toBeLessThanOrEqual(0.05);
    expect(shareOf(verdicts(1.5), 'FAIL')).toBe(1);
    expect(shareOf(verdicts(1, 0.05), 'FAIL')).toBe(1);
  });

  it('windows do not change the verdict, and the baseline precedes it', () => {
    for (let seed = firstSeed; seed < firstSeed + Math.min(seeds, 100); seed += 1) {
      const random = seeded(seed);
      const many = Array.from({ length: 40 }, () => streamOf(random, 2, 0.1));
      const usual = count(Array.from({ length: 1.1 * LIVE_BASELINE_STREAMS }, () => streamOf(random)));
      const take = (parts: number) => {
        let known = beginTrial(CANARY, 0, usual) as Trial;
        for (let part = 0; part < parts; part += 1) {
          const own = count(many.filter((_, at) => at % parts === part));
          known = addCountsToTrial(known, { trial: { served: own, mirrored: noCounts }, stable: own, usual });
        }
        return known;
      };
      expect(take(7), `seed ${seed}`).toEqual(take(1));
    }
    const blind = beginTrial(CANARY, 0) as Trial;
    const slow = count(Array.from({ length: 500 }, () => ({ outcome: 'failed', milliseconds: 0 }) as const));
    expect(
      evaluateTrial(
        addCountsToTrial(blind, { trial: { served: slow, mirrored: noCounts }, stable: noCounts, usual: noCounts }),
        1,
      ),
    ).toBe('INCONCLUSIVE');
  });

  it('a higher share keeps its observations, other moves start over', () => {
    const known = tryOut(seeded(1), 1, 500) as Extract<Trial, { stage: 'canary' }>;
    const usual = noCounts;
    const more = followStanding(known, { stage: 'canary', share: 0.5 }, 9, usual) as typeof known;
    expect([more.run.share, more.run.streams, more.run.bad, more.slow]).toEqual([0.5, 0, known.run.bad, known.slow]);
    expect(followStanding(known, CANARY, 0, usual)).toBe(known);
    expect(followStanding(known, { stage: 'canary', share: 0.1 }, 9, usual)).toEqual(
      beginTrial({ stage: 'canary', share: 0.1 }, 9, usual),
    );
    expect(followStanding(known, { stage: 'grey' }, 9, usual)).toEqual({ stage: 'grey', since: 9, mirrored: noCounts });
    expect(followStanding(known, { stage: 'full' }, 9, usual)).toBeUndefined();
    const settles = LIVE_SETTLE_S * 1_000;
    expect([isSettling(more, 9 + settles - 1), isSettling(more, 9 + settles)]).toEqual([true, false]);
  });
});

describe('C7: live traffic at the gates', () => {
  const REVISION = `sha256:${'a'.repeat(64)}`;
  const now = Date.now();
  const moves = (from: Standing, to: Standing, evidence: GateStatement['evidence'] = []): GateStatement => ({
    ...{ model: 'reference-en', revision: REVISION, id: 'x', from, to, at: now, evidence },
  });
  const toCanary = moves({ stage: 'grey' }, { stage: 'canary', share: 0.01 });
  const greyTrial = (share: number, streams: number, failed = 0) => {
    const random = seeded(3);
    const copies = Array.from({ length: streams }, () => copyOf(random, share));
    const broken = Array.from({ length: failed }, () => ({ outcome: 'failed', milliseconds: 0 }) as const);
    return addCountsToTrial(beginTrial({ stage: 'grey' }, 0) as Trial, {
      trial: { served: noCounts, mirrored: count([...copies, ...broken]) },
      stable: noCounts,
      usual: noCounts,
    });
  };
  const isOpen = (statement: GateStatement, trial?: Trial) =>
    openGate(statement, 'ann', { signers: ['bob'], now, live: trial && evidenceOf(trial) });

  it('live evidence replaces that of a statement once it passes', () => {
    expect(isOpen(toCanary)).toMatchObject({ ok: false });
    expect(isOpen(toCanary, greyTrial(0.01, 250))).toEqual({ ok: true, value: 0 });
    expect(isOpen(toCanary, greyTrial(0.01, 199))).toMatchObject({ ok: false });
    expect(isOpen(toCanary, greyTrial(0.09, 250))).toMatchObject({ ok: false });
  });

  it('C7 live traffic overrides signed evidence', () => {
    const brought = evidenceOf(greyTrial(0, 250));
    const told = moves({ stage: 'grey' }, { stage: 'canary', share: 0.01 }, brought);
    expect(isOpen(told)).toEqual({ ok: true, value: 0 });
    expect(isOpen(told, greyTrial(0, 0))).toEqual({ ok: true, value: 0 });
    expect(isOpen(told, greyTrial(0, 10))).toMatchObject({ ok: false });
    expect(isOpen(told, greyTrial(0.4, 100))).toMatchObject({ ok: false });
    expect(isOpen(told, greyTrial(0, 250, 1))).toMatchObject({ ok: false });
    // Back is always open.
    expect(isOpen(moves({ stage: 'grey' }, { stage: 'develop-verify' }), greyTrial(0.4, 100))).toEqual({
      ok: true,
      value: 0,
    });
    expect(evaluateTrial(greyTrial(0.4, 100), now)).toBe('FAIL');
    expect(isOpen(moves({ stage: 'develop-verify' }, { stage: 'grey' }, forGrey()))).toEqual({ ok: true, value: 0 });
  });
});
