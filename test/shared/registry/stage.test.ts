import { describe, expect, it } from 'vitest';
import { canaryShares, moveOf, type Standing, stages, standing } from '../../../shared/registry/stage.ts';

const all: Standing[] = [
  { stage: 'develop-verify' },
  { stage: 'grey' },
  ...canaryShares.map((share) => ({ stage: 'canary' as const, share })),
  { stage: 'full' },
  { stage: 'retired' },
];

describe('C7: the moves between five stages', () => {
  it('forward is one step at a time, through all of them', () => {
    const forward = all.flatMap((from, at) =>
      all.slice(at + 1).filter((to) => ['advance', 'step-up'].includes(moveOf(from, to) ?? '')),
    );
    expect(forward).toEqual(all.slice(1, -1));
  });

  it('withdrawal and retirement are always open; the archive leads to the beginning', () => {
    for (const [at, from] of all.entries()) {
      expect(moveOf(from, from)).toBeUndefined();
      if (from.stage === 'retired') {
        expect(all.map((to) => moveOf(from, to)).filter(Boolean)).toEqual(['restore']);
        continue;
      }
      expect(moveOf(from, { stage: 'retired' })).toBe('retire');
      if (at > 0) expect(moveOf(from, { stage: 'develop-verify' })).toBe('withdraw');
    }
  });

  it('a revision from full is no canary again', () => {
    for (const to of all.filter(({ stage }) => stage === 'canary' || stage === 'grey'))
      expect(moveOf({ stage: 'full' }, to)).toBeUndefined();
  });

  it('a share goes with the stage canary, and only with it', () => {
    for (const stage of stages) {
      expect(standing.safeParse({ stage }).success).toBe(stage !== 'canary');
      expect(standing.safeParse({ stage, share: 0.05 }).success).toBe(stage === 'canary');
    }
    expect(standing.safeParse({ stage: 'canary', share: 0.2 }).success).toBe(false);
  });
});
