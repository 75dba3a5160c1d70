// Routing where one agent serves several revisions of a name.
import { describe, expect, it } from 'vitest';
import { describeVersion } from '../../../edge/protocol/torchserve.ts';
import { pick, type RouteRequest } from '../../../edge/routing/pick.ts';
import { pickMirror } from '../../../edge/routing/pick-mirror.ts';
import { attemptsLeft } from '../../../edge/routing/retry.ts';
import type { RosterEntry, Snapshot } from '../../../shared/pool/heartbeat.ts';
import type { ModelRelease } from '../../../shared/registry/release.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

const [A, B, C] = ['a', 'b', 'c'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string, string];
type Tier = 'ram' | 'ssd' | 'blob' | 'loaded';
type Held = Readonly<Record<string, Tier>>;

const holding = (name: string, held: Held, change: Partial<RosterEntry['description']> = {}) =>
  agent(name, {
    models: Object.entries(held).map(([revision, tier]) =>
      model({ revision, ...(tier !== 'loaded' && { tier }), live: true }),
    ),
    ...change,
  });
const told = (entries: readonly RosterEntry[], release: ModelRelease): Snapshot[] => [
  { ...snapshot(entries), release: { v: 1, generation: 1, models: { 'reference-en': release } } },
];
const canary: ModelRelease = { stable: A, canary: { revision: B, share: 0.25 } };
const digitOf = (revision: string) => revision.charAt('sha256:'.length);

/** The attempts of a request as `<agent> <first digit of the revision>: <why>`. */
function attempts(snapshots: readonly Snapshot[], change: Partial<RouteRequest> = {}): string[] {
  const picked = pick(request(change), { snapshots, memory: new Map(), now, random: () => 0.5 });
  if (!picked.ok) return [picked.refusal.reason];
  return picked.value.map(({ entry, model, why }) => `${entry.description.agent} ${digitOf(model.revision)}: ${why}`);
}

const firsts = (snapshots: readonly Snapshot[], change: Partial<RouteRequest> = {}) =>
  [attempts(snapshots, change)[0]?.split(':')[0]][0];

describe('A16 two revisions of a name at one agent', () => {
  const both = holding('one', { [A]: 'loaded', [B]: 'loaded' });

  it('C7 gives the canary its share of sessions, always the same ones', () => {
    const serve = (share: 0.25 | 0.5) =>
      Array.from({ length: 1_000 }, (_, at) =>
        firsts(told([both], { stable: A, canary: { revision: B, share } }), { session: `s${at}` }),
      );
    const [quarter, half] = [serve(0.25), serve(0.5)];
    const onTrial = quarter.filter((one) => one === 'one b').length;
    expect(onTrial).toBeGreaterThan(200);
    expect(onTrial).toBeLessThan(300);
    expect(quarter.filter((one) => one === 'one a').length).toBe(1_000 - onTrial);
    for (const [at, one] of quarter.entries()) if (one === 'one b') expect(half[at]).toBe('one b');
  });

  it('C6 one attempt for each agent, in one revision', () => {
    const two = holding('two', { [A]: 'loaded', [B]: 'loaded' });
    for (let session = 0; session < 50; session += 1) {
      const made = attempts(told([both, two], canary), { session: `s${session}` });
      expect(new Set(made.map((one) => one.split(' ')[0])).size).toBe(2);
      expect(new Set(made.map((one) => one.split(' ')[1])).size).toBe(1);
    }
  });

  it('A16 moves all sessions at once when the alias moves', () => {
    expect(firsts(told([both], { stable: A, before: B }))).toBe('one a');
    expect(firsts(told([both], { stable: B, before: A }))).toBe('one b');
    expect(attempts(told([holding('one', { [A]: 'loaded' })], { stable: B, before: A }))).toEqual([
      'one a: the only one of 1, older',
    ]);
  });

  it('C7 copies go to the grey revision where it is loaded', () => {
    const release: ModelRelease = { stable: A, grey: { revisions: [B, C], share: 1 } };
    const entries = [holding('one', { [A]: 'loaded', [B]: 'ram', [C]: 'loaded' })];
    const to = pickMirror(request(), told(entries, release), now, () => 0);
    expect(to && digitOf(to.model.revision)).toBe('c');
    expect(pickMirror(request(), told([holding('one', { [B]: 'ram' })], release), now, () => 0)).toBeUndefined();
  });

  it('C6 drops a planned attempt whose agent no longer has the revision', () => {
    const release = { stable: A, before: C };
    const fleet = [both, holding('two', { [A]: 'loaded' })];
    const planned = pick(request(), { snapshots: told(fleet, release), memory: new Map(), now, random: () => 0 });
    const left = (second: Held) =>
      attemptsLeft(planned.ok ? planned.value : [], 1, request(), {
        snapshots: told([both, holding('two', second)], release),
        memory: new Map(),
        now,
        random: () => 0,
      }).map(({ entry }) => entry.description.agent);
    expect(left({ [A]: 'loaded', [B]: 'loaded' })).toEqual(['two']);
    expect(left({ [B]: 'loaded' })).toEqual([]);
  });

  it('A16 a session stays with the revision that it began with', () => {
    const fleet = [holding('one', { [A]: 'loaded' }), holding('two', { [A]: 'loaded', [B]: 'ram' })];
    const moved = told(fleet, { stable: A, before: B });
    expect(firsts(moved, { revision: B })).toBe('two b');
    expect(firsts(told(fleet, { stable: A, canary: { revision: B, share: 0.05 } }), { revision: B })).toBe('two b');
    expect(firsts(moved, { revision: C })).not.toContain('b');
    // Withdrawn, on trial without callers, or in no agent: the stable one.
    expect(firsts(told(fleet, { stable: A, before: A }), { revision: B })).toMatch(/ a$/);
    expect(firsts(told(fleet, { stable: A, grey: { revisions: [B], share: 1 } }), { revision: B })).toMatch(/ a$/);
    expect(firsts(told([holding('two', { [A]: 'loaded', [B]: 'blob' })], canary), { revision: B })).toBe('two a');
  });
});

describe('A11 tiers of revisions', () => {
  const stable = { stable: A };

  it('prefers the warmest tier to slots, pools and accelerators', () => {
    const fleet = (['blob', 'ssd', 'ram', 'loaded'] as const).map((tier) =>
      holding(tier, { [A]: tier }, tier === 'loaded' ? { accelerator: 'cpu', slots: 1 } : { slots: 64 }),
    );
    expect(attempts(told(fleet, stable))).toEqual(['loaded a: the only one of 1', 'ram a: the only one of 1, in ram']);
    expect(firsts(told(fleet, stable), { realtime: true })).toBe('loaded a');
    expect(attempts(told(fleet, stable), { sticky: 'k' })).toEqual(['loaded a: sticky, choice 1 of 1']);
    expect(attempts(told(fleet.slice(0, 2), stable))).toEqual([
      'ssd a: the only one of 1, in ssd',
      'blob a: the only one of 1, in blob',
    ]);
  });

  it('never widens a constraint for a warm revision', () => {
    const warm = holding('far', { [A]: 'loaded' }, { zone: 'us' });
    const cold = holding('near', { [A]: 'blob' });
    const snapshots = [...told([cold], stable), snapshot([warm], 'us')];
    expect(attempts(snapshots)).toEqual(['near a: the only one of 1, in blob']);
    expect(attempts(snapshots, { suite: 7 })).toEqual(['no_pool']);
  });

  it('A16 the former stable serves until the new one is loaded', () => {
    const switched: ModelRelease = { stable: B, before: A };
    const at = (held: Held) => firsts(told([holding('one', held)], switched));
    expect(at({ [A]: 'loaded', [B]: 'ssd' })).toBe('one a');
    expect(at({ [A]: 'loaded', [B]: 'loaded' })).toBe('one b');
    expect(at({ [A]: 'ram', [B]: 'ssd' })).toBe('one b');
  });

  it('C7 canary sessions get the stable revision until the canary is loaded', () => {
    const at = (held: Held) => firsts(told([holding('one', held)], canary), { canaryShare: 1 });
    expect(at({ [A]: 'loaded', [B]: 'ram' })).toBe('one a');
    expect(at({ [A]: 'loaded', [B]: 'loaded' })).toBe('one b');
    expect(at({ [A]: 'ram', [B]: 'blob' })).toBe('one b');
  });

  it('A16 TorchServe’s workers are the agents with the revision loaded', () => {
    const fleet = [holding('warm', { [A]: 'loaded', [B]: 'ssd' }), holding('cold', { [A]: 'ram', [B]: 'loaded' })];
    const row = { revision: A, stage: 'full' as const, author: 'ann', registered: 1, since: 1, aliases: [] };
    const state = { model: 'reference-en', seq: 1, at: 1, aliases: [], revisions: [row] };
    const described = describeVersion(state, { version: '1', row }, told(fleet, stable));
    expect(described.workers.map(({ id }) => id)).toEqual(['warm']);
  });
});
