// Frequency of log checks while idle and under load.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noticing } from '../../../functions/audit/log/notifying-store.ts';
import { openRounds, Pace } from '../../../functions/audit/log/rounds.ts';
import { MemoryStore } from '../../fake/log-store.ts';
import { runs } from '../../seeds.ts';

const LONGEST = 3_000;

describe('pace of a look', () => {
  it('polls ever more seldom while idle, up to a bound, and resets on work', () => {
    const pace = new Pace(LONGEST);
    const looks: number[] = [];
    for (let now = 0; now <= 20_000; now += 500) {
      if (!pace.due(now, 0)) continue;
      looks.push(now);
      pace.looked(now, 0, now === 9_500);
    }
    expect(looks).toEqual([0, 500, 1_500, 3_500, 6_500, 9_500, 10_000, 10_500, 11_500, 13_500, 16_500, 19_500]);
  });

  it('polls at once after the clock went back', () => {
    const pace = new Pace(LONGEST);
    for (const now of [5_000_000, 5_000_600, 5_002_000]) pace.looked(now, 0, false);
    expect([pace.due(5_002_500, 0), pace.due(5_001_999, 0), pace.due(1_400_000, 0)]).toEqual([false, true, true]);
  });

  it('never sleeps past its bound, nor over an unread write', () => {
    const step = fc.record({ after: fc.nat(2_000), written: fc.boolean(), found: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const pace = new Pace(LONGEST);
        let [now, changes, lookedAt, known] = [0, 0, Number.NEGATIVE_INFINITY, -1];
        for (const { after, written, found } of steps) {
          now += after;
          if (written) changes += 1;
          const due = pace.due(now, changes);
          if (changes !== known || now - lookedAt >= LONGEST) expect(due).toBe(true);
          if (!due) continue;
          [lookedAt, known] = [now, changes];
          pace.looked(now, changes, found);
        }
      }),
      { numRuns: runs(200, 2_000) },
    );
  });

  it('a write during a poll triggers the next; a failed zone delays no other', async () => {
    let now = 0;
    const changes = new Map<string, number>();
    const [looked, failed]: [string[], string[]] = [[], []];
    const round = openRounds({
      zones: ['eu', 'us'],
      longestMs: LONGEST,
      now: () => now,
      changes: (zone) => changes.get(zone) ?? 0,
      async work(zone) {
        looked.push(`${zone} ${now}`);
        if (zone === 'us') throw new Error('storage');
        if (now === 0) changes.set('eu', 1);
        return false;
      },
      failed: (zone) => failed.push(zone),
    });
    for (now = 0; now < 300; now += 100) await round();
    expect(looked).toEqual(['eu 0', 'us 0', 'eu 100']);
    expect(failed).toEqual(['us']);
  });

  it('a write counts for its area and zone, also a failed one', async () => {
    const bytes = new Uint8Array(1);
    const kept = new MemoryStore();
    let broken = false;
    const store = noticing({
      read: (area, name) => kept.read(area, name),
      async create(area, name, what) {
        if (broken) throw new Error('storage');
        return kept.create(area, name, what);
      },
      replace: (area, name, what, version) => kept.replace(area, name, what, version),
      list: (area, prefix, limit) => kept.list(area, prefix, limit),
      remove: (area, name) => kept.remove(area, name),
    });
    await store.create('intake', 'eu/who/1', bytes);
    await store.create('intake', 'us/who/1', bytes);
    await store.replace('state', 'eu/state', bytes, 'none');
    broken = true;
    await store.create('intake', 'eu/who/2', bytes).catch(() => {});
    await store.read('intake', 'eu/who/1');
    expect([store.changes('intake', 'eu'), store.changes('intake', 'us')]).toEqual([2, 1]);
    expect([store.changes('state', 'eu'), store.changes('state', 'us')]).toEqual([1, 0]);
  });
});
