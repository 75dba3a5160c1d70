import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cohortOf } from '../../../edge/routing/cohort.ts';
import { pick } from '../../../edge/routing/pick.ts';
import { randomOf } from '../../fake/random.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

describe('C6 cohorts', () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });

  it('stick, and only grow with the share', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), share, share, (tenant, session, one, other) => {
        const small = cohortOf(tenant, session, Math.min(one, other));
        if (small === 'canary') expect(cohortOf(tenant, session, Math.max(one, other))).toBe('canary');
        expect(cohortOf(tenant, session, 0)).toBe('stable');
        expect(cohortOf(tenant, session, 1)).toBe('canary');
      }),
    );
  });

  it('have the requested size, within binomial bounds', () => {
    const runs = 20_000;
    const members = Array.from({ length: runs }, (_, at) => cohortOf('tenant', `s${at}`, 0.05));
    const found = members.filter((cohort) => cohort === 'canary').length / runs;
    expect(Math.abs(found - 0.05)).toBeLessThan(4.5 * Math.sqrt((0.05 * 0.95) / runs));
  });

  it('decide the revision before load; a canary falls back to stable', () => {
    const stable = agent('stable');
    const canary = agent('canary', { models: [model({ stage: 'canary' })] }, { busy: 4, serviceMs: 5000 });
    const first = (canaryShare: number, entries = [stable, canary]) => {
      const result = pick(request({ canaryShare }), {
        snapshots: [snapshot(entries)],
        memory: new Map(),
        now,
        random: randomOf(3),
      });
      return result.ok ? result.value.map(({ entry }) => entry.description.agent) : result.refusal.reason;
    };
    expect(first(1)).toEqual(['canary']);
    expect(first(0)).toEqual(['stable']);
    expect(first(1, [stable])).toEqual(['stable']);
    expect(first(0, [canary])).toBe('no_pool');
  });
});
