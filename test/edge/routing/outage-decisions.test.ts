import { describe, expect, it } from 'vitest';
import { agentsHaveReconnected, ROSTER_GATHER_MS } from '../../../edge/routing/have-reconnected.ts';
import { ATTEMPTS_MAX, pick } from '../../../edge/routing/pick.ts';
import { answerTimeLeft, attemptsLeft, REACH_MS } from '../../../edge/routing/retry.ts';
import type { RosterEntry, Snapshot } from '../../../shared/pool/heartbeat.ts';
import { randomOf } from '../../fake/random.ts';
import { agent, now, request, snapshot } from './fleet.ts';

describe('C6 attempts that are left after a failure', () => {
  const [one, other, third] = [agent('one'), agent('other', { pool: 'p2' }), agent('third', { pool: 'p3' })];
  const away = (entry: RosterEntry): RosterEntry => ({ ...entry, load: { ...entry.load, engineReady: false } });
  const planned = (entries: readonly RosterEntry[]) => {
    const picked = pick(request(), { snapshots: [snapshot(entries)], memory: new Map(), now, random: randomOf(1) });
    if (!picked.ok) throw new Error(picked.refusal.reason);
    return picked.value;
  };
  const left = (entries: readonly RosterEntry[], made = 1, plan = planned([one, other])) => {
    const moment = { snapshots: [snapshot(entries)], memory: new Map(), now, random: randomOf(1) };
    const names = attemptsLeft(plan, made, request(), moment).map(({ entry }) => entry.description.agent);
    return { names, tried: plan[0]?.entry.description.agent };
  };

  it('are those planned while their agents are able', () => {
    const { names, tried } = left([one, other, third]);
    expect([tried, ...names].sort()).toEqual(['one', 'other']);
  });

  it('are none when every other engine is away', () => {
    expect(left([one, away(other)], 1, planned([one])).names).toEqual([]);
    expect(left([away(one), away(other)]).names).toEqual([]);
  });

  it('name another agent when the planned one is away', () => {
    expect(left([away(one), away(other), third]).names).toEqual(['third']);
  });

  it('wait together no longer than the bound for one request', () => {
    let spent = 0;
    for (let made = 0; made < ATTEMPTS_MAX; made++) spent += answerTimeLeft(spent);
    expect(spent).toBe(REACH_MS);
  });
});

describe('C6 rosters that list every agent that is connected', () => {
  const began = now - ROSTER_GATHER_MS;
  const roster = (zone: string, change: Partial<Snapshot> = {}): Snapshot => ({
    ...snapshot([], zone),
    began,
    ...change,
  });
  const both = ['eu', 'us'];

  it.each<[string, readonly Snapshot[], boolean]>([
    ['have run for long enough', [roster('eu'), roster('us')], true],
    ['do not when one has just started', [roster('eu'), roster('us', { began: began + 1 })], false],
    ['do not when one is not known', [roster('eu')], false],
    ['do not when one answered too long ago', [roster('eu'), roster('us', { at: now - 4_000, began: 0 })], false],
  ])('%s', (_, snapshots, gathered) => expect(agentsHaveReconnected(both, snapshots, now)).toBe(gathered));
});
