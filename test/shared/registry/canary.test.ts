// Whole canaries, from 1 % to 50 %: error rates, and behaviour at the bounds.
import { describe, expect, it } from 'vitest';
import {
  beginCanary,
  CANARY_STEP_S,
  CANARY_STREAMS,
  type CanaryRun,
  canaryRun,
  decideCanary,
  stepUp,
} from '../../../shared/registry/canary.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import { runs } from '../../seeds.ts';
import { most } from './chance.ts';
import { addStream, rollOut } from './rollouts.ts';

const SEED = 20_261_122;

describe('C7: whole canaries, 1 to 50 %, two metrics (seeds from 20261122)', { timeout: 20_000 }, () => {
  const many = runs(50, 1_000);
  const count = (world: Parameters<typeof rollOut>[1]) => {
    const ends = Array.from({ length: many }, (_, at) => rollOut(seeded(SEED + at), world));
    return (end: string) => ends.filter((one) => one === end).length;
  };
  const usual = { bad: 0.05, failed: 0.002, slower: 1, breaks: 1 };

  it('rolls back an equal revision in at most 2 %, completes otherwise', () => {
    const ended = count(usual);
    expect(ended('rolled back')).toBeLessThanOrEqual(most(0.02, many));
    expect(ended('full')).toBeGreaterThanOrEqual(0.95 * many);
  });

  it('promotes one with 50 % more slow streams in at most 5 %', () => {
    const ended = count({ ...usual, slower: 1.5 });
    expect(ended('full')).toBeLessThanOrEqual(most(0.05, many));
    expect(ended('rolled back')).toBeGreaterThanOrEqual(0.85 * many);
  });

  it('rolls back one with ten times the failures, though they are few', () => {
    expect(count({ ...usual, breaks: 10 })('rolled back')).toBeGreaterThanOrEqual(0.97 * many);
  });

  it('without bad streams there is no verdict; asks a person after a day', () => {
    expect(rollOut(seeded(SEED), { ...usual, bad: 0, failed: 0 })).toBe('asked');
  });
});

describe('C7: INCONCLUSIVE extends, never promotes', () => {
  const heard = (run: CanaryRun, streams: number, bad: number, cohort: 'canary' | 'stable' = 'canary'): CanaryRun => {
    let next = run;
    for (let at = 0; at < streams; at += 1) next = addStream(next, { cohort, bad: at < bad, failed: false });
    return next;
  };
  const last = (): CanaryRun => [1, 2, 3, 4].reduce((run) => stepUp(run, 0), beginCanary(0));
  const enough = CANARY_STREAMS;

  it('a share is left after enough streams, not before', () => {
    expect(decideCanary(heard(beginCanary(0), enough - 1, 0), 0).move).toBe('hold');
    expect(decideCanary(heard(beginCanary(0), enough, 0), 0)).toEqual({ move: 'step-up', verdict: 'INCONCLUSIVE' });
  });

  it('at the last share only a PASS promotes', () => {
    expect(last().share).toBe(0.5);
    expect(decideCanary(heard(last(), 10 * enough, 0), 0).move).toBe('hold');
    const passing = heard(heard(last(), enough, 5), 200, 60, 'stable');
    expect(decideCanary(passing, 0)).toEqual({ move: 'promote', verdict: 'PASS' });
  });

  it('after a day without a verdict a person must decide', () => {
    const run = heard(last(), enough, 0);
    const day = CANARY_STEP_S * 1_000;
    expect([decideCanary(run, day).move, decideCanary(run, day + 1).move]).toEqual(['hold', 'ask']);
  });

  it('harm at any share rolls back for good', () => {
    const harmed = heard(beginCanary(0), 40, 40);
    expect(decideCanary(harmed, 0).move).toBe('roll-back');
    const later = heard(stepUp(harmed, 0), 500, 400, 'stable');
    expect(decideCanary(later, 0).move).toBe('roll-back');
    expect(canaryRun.parse(JSON.parse(JSON.stringify(later)))).toEqual(later);
  });
});
