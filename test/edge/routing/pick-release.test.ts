// Routing by the release map in the snapshots.
import { describe, expect, it } from 'vitest';
import { pick } from '../../../edge/routing/pick.ts';
import { pickMirror } from '../../../edge/routing/pick-mirror.ts';
import type { RosterEntry, Snapshot } from '../../../shared/pool/heartbeat.ts';
import { newRegistry } from '../../../shared/registry/registry.ts';
import {
  type ModelRelease,
  newestRelease,
  partOf,
  type ReleaseMap,
  releaseOf,
} from '../../../shared/registry/release.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

const [A, B, C] = ['a', 'b', 'c'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string, string];
const at = (name: string, revision: string, stage: 'full' | 'canary' | 'grey' = 'full') =>
  agent(name, { models: [model({ revision, stage })] });
const map = (one: ModelRelease, generation = 1): ReleaseMap => ({ v: 1, generation, models: { 'reference-en': one } });
const told = (entries: readonly RosterEntry[], release?: ReleaseMap, zone = 'eu'): Snapshot => ({
  ...snapshot(entries, zone),
  ...(release && { release }),
});

/** Agents that sessions are sent to first, and how many of a thousand sessions each. */
function sessions(snapshots: readonly Snapshot[], of = 1_000): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let session = 0; session < of; session += 1) {
    const picked = pick(request({ session: `s${session}` }), { snapshots, memory: new Map(), now, random: () => 0.5 });
    const name = picked.ok ? (picked.value[0]?.entry.description.agent ?? '') : picked.refusal.reason;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe('C7: alias to digest', () => {
  const fleet = [at('old', A), at('new', B), at('other', C)];

  it('without a map agents’ stages count; with one, only its revisions serve', () => {
    expect(Object.keys(sessions([told(fleet)])).length).toBeGreaterThan(0);
    expect(sessions([told(fleet, map({ stable: B }))], 50)).toEqual({ new: 50 });
    expect(sessions([told(fleet, map({ stable: A, before: B }))], 50)).toEqual({ old: 50 });
    // An agent's own stage does not override the map.
    expect(sessions([told([at('old', A), at('shy', B, 'grey')], map({ stable: B }))], 50)).toEqual({ shy: 50 });
  });

  it('a canary gets its share, always with the same sessions', () => {
    const share = (part: 0.05 | 0.25) => {
      const canary = { revision: B, share: part };
      return [told([at('old', A), at('new', B)], map({ stable: A, canary }))];
    };
    const [few, some] = [sessions(share(0.05)), sessions(share(0.25))];
    expect(few.new).toBeGreaterThan(25);
    expect(few.new).toBeLessThan(80);
    expect(some.new).toBeGreaterThan(200);
    expect(some.new).toBeLessThan(300);
    expect(sessions(share(0.05))).toEqual(few);
    const first = (snapshots: Snapshot[], session: string) => {
      const picked = pick(request({ session }), { snapshots, memory: new Map(), now, random: () => 0.5 });
      return picked.ok && picked.value.map(({ entry }) => entry.description.agent);
    };
    for (let session = 0; session < 300; session += 1) {
      const before = first(share(0.05), `s${session}`);
      // A session in the canary stays in it while the share grows, and never sees both revisions.
      if (before && before[0] === 'new') expect(first(share(0.25), `s${session}`)).toEqual(before);
      expect(before && new Set(before).size).toBe(1);
    }
  });

  it('sessions of a canary without agents go to stable', () => {
    const canary = { revision: B, share: 0.5 as const };
    expect(sessions([told([at('old', A)], map({ stable: A, canary }))], 50)).toEqual({ old: 50 });
  });

  it('the former stable serves until an agent has the new one', () => {
    const moved = map({ stable: B, before: A });
    expect(sessions([told([at('old', A), at('other', C)], moved)], 50)).toEqual({ old: 50 });
    expect(sessions([told(fleet, moved)], 50)).toEqual({ new: 50 });
    expect(sessions([told([at('other', C)], moved)], 5)).toEqual({ no_pool: 5 });
  });

  it('naming a first revision without agents disables nothing', () => {
    expect(sessions([told([at('old', A)], map({ stable: B }))], 50)).toEqual({ old: 50 });
  });

  it('a rollback is a map with a new generation, effective at once', () => {
    const both = [at('old', A), at('new', B)];
    expect(sessions([told(both, map({ stable: B, before: A }, 7))], 50)).toEqual({ new: 50 });
    expect(sessions([told(both, map({ stable: A, before: B }, 8))], 50)).toEqual({ old: 50 });
  });

  it('the newest of several rosters counts for all of them', () => {
    const zones = [told([at('old', A)], map({ stable: A }, 3)), told([at('us', B)], map({ stable: B }, 4), 'us')];
    expect(newestRelease(zones.map(({ release }) => release))?.generation).toBe(4);
    expect(newestRelease([undefined, undefined])).toBeUndefined();
  });

  it('other models are none of its business', () => {
    const release = { ...map({ stable: A }), models: { voice: { stable: A } } };
    expect(sessions([told([at('old', B)], release)], 5)).toEqual({ old: 5 });
  });
});

describe('C7: copies for revisions on trial', () => {
  const grey = (share: number, ...revisions: string[]) => map({ stable: A, grey: { revisions, share } });
  const fleet = [at('old', A), at('new', B), at('newer', C)];
  const copies = (snapshots: readonly Snapshot[], changes = {}, of = 400) => {
    const counts: Record<string, number> = {};
    for (let one = 0; one < of; one += 1) {
      const draws = [(one + 0.5) / of, (one % 7) / 7];
      const to = pickMirror(request(changes), snapshots, now, () => draws.shift() ?? 0.5);
      const name = to?.entry.description.agent ?? 'nobody';
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  };

  it('go to them for the share of the requests, and callers never', () => {
    const snapshots = [told(fleet, grey(0.25, B, C))];
    const found = copies(snapshots);
    expect(found.nobody).toBe(300);
    expect((found.new ?? 0) + (found.newer ?? 0)).toBe(100);
    expect(Math.min(found.new ?? 0, found.newer ?? 0)).toBeGreaterThan(30);
    expect(sessions(snapshots, 200)).toEqual({ old: 200 });
    expect(sessions([told([at('new', B)], grey(1, B))], 5)).toEqual({ no_pool: 5 });
    // A canary keeps its own sessions.
    const both = map({ stable: A, canary: { revision: C, share: 0.25 }, grey: { revisions: [B], share: 1 } });
    const beside = sessions([told(fleet, both)]);
    expect(beside).toEqual(sessions([told(fleet, map({ stable: A, canary: { revision: C, share: 0.25 } }))]));
    expect(beside.new).toBeUndefined();
    expect(copies([told(fleet, both)], {}, 50)).toEqual({ new: 50 });
  });

  it('keep every constraint that the request has', () => {
    const all = grey(1, B);
    expect(copies([told(fleet, all)], {}, 5)).toEqual({ new: 5 });
    for (const changes of [
      { zones: ['us'] },
      { language: 'de' },
      { allowed: ['de'] },
      { suite: 7 },
      { task: 'synthesize' as const },
    ]) {
      expect(copies([told(fleet, all)], changes, 5), JSON.stringify(changes)).toEqual({ nobody: 5 });
    }
    const late = { ...told(fleet, all), at: now - 60_000 };
    expect(copies([late], {}, 5)).toEqual({ nobody: 5 });
    expect(copies([told(fleet, grey(0, B))], {}, 5)).toEqual({ nobody: 5 });
    expect(copies([told(fleet, map({ stable: A }))], {}, 5)).toEqual({ nobody: 5 });
  });
});

describe('C7: the release map', () => {
  it('derives from the log of a model', () => {
    const made = { author: 'ann', registered: 1, since: 1 };
    const registry = {
      ...newRegistry('m'),
      revisions: {
        [A]: { ...made, standing: { stage: 'full' as const } },
        [B]: { ...made, standing: { stage: 'canary' as const, share: 0.1 as const } },
        [C]: { ...made, standing: { stage: 'full' as const } },
      },
      aliases: { stable: { revision: A, since: 1, before: C }, beta: { revision: B, since: 1 } },
    };
    expect(releaseOf(registry)).toEqual({ stable: A, before: C, canary: { revision: B, share: 0.1 } });
    expect(releaseOf(newRegistry('m'))).toEqual({});
    // The first of its model, and served already: on its way to the first `stable` it goes on answering.
    const unnamed = releaseOf({ ...registry, aliases: {} });
    expect(unnamed).toEqual({});
    expect(partOf(unnamed, { revision: B, stage: 'full' })).toBe('full');
    // A former `stable` that is retired or withdrawn serves nothing, even where no other revision exists.
    for (const stage of ['retired', 'develop-verify'] as const) {
      const revisions = { ...registry.revisions, [C]: { ...made, standing: { stage } } };
      const left = releaseOf({ ...registry, revisions });
      expect(left).toEqual({ ...releaseOf(registry), before: A });
      expect(partOf(left, { revision: C, stage: 'full' })).toBeUndefined();
    }
    const grey = { ...made, standing: { stage: 'grey' as const } };
    const trying = { ...registry, revisions: { ...registry.revisions, [C]: grey } };
    expect(releaseOf(trying, 0.5).grey).toEqual({ revisions: [C], share: 0.5 });
    expect(releaseOf(trying, 0)).toEqual({ ...releaseOf(registry), before: A });
  });

  it('an unlisted revision serves only in place of none', () => {
    const names = { stable: A, before: B, canary: { revision: C, share: 0.1 as const } };
    const part = (revision: string, release: ModelRelease | undefined, stage = 'full') =>
      partOf(release, { revision, stage });
    expect([A, B, C, `sha256:${'d'.repeat(64)}`].map((one) => part(one, names))).toEqual([
      'full',
      'older',
      'canary',
      undefined,
    ]);
    expect(part(B, {})).toBe('full');
    expect(part(B, {}, 'canary')).toBeUndefined();
    expect(part(B, undefined, 'canary')).toBe('canary');
    expect(part(B, undefined, 'grey')).toBeUndefined();
  });
});
