import { describe, expect, it } from 'vitest';
import { readReceived } from '../../../functions/audit/intake/intake.ts';
import { PRODUCER_GONE_MS } from '../../../functions/audit/limits.ts';
import {
  openReporter,
  REPORTS_WAITING_MAX,
  type Reporter,
  type ReportParts,
} from '../../../functions/audit/report/report.ts';
import type { EventDraft } from '../../../shared/audit/event.ts';
import type { LeafDraft } from '../../../shared/audit/leaf.ts';
import { settle } from '../../fake/clock.ts';
import { MemoryStore } from '../../fake/log-store.ts';

const act = (count: number): EventDraft => ({ type: 'operator.act', action: 'jobs.replay', zone: 'eu', count });

type Fate = 'done' | 'failed' | 'failed but done' | 'hangs' | 'hangs but done';

class Desk {
  readonly store = new MemoryStore();
  /** Outcome of each write, in order; later writes succeed. */
  readonly fates: Fate[] = [];
  now = 1_000;
  /** Rings all bells that were set and not cancelled. */
  ring: () => void = () => {};
  readonly reporter: Reporter;

  constructor() {
    const bells = new Set<() => void>();
    this.ring = () => {
      for (const bell of bells) bell();
    };
    const parts: ReportParts = {
      store: { create: (area, name, bytes) => this.#create(area, name, bytes) },
      hide: () => async () => 'hidden',
      now: () => this.now,
      after: () => {
        let bell = () => {};
        const elapsed = new Promise<void>((settle) => {
          bell = settle;
        });
        bells.add(bell);
        return { elapsed, cancel: () => void bells.delete(bell) };
      },
    };
    this.reporter = openReporter(parts);
  }

  async #create(area: Parameters<MemoryStore['create']>[0], name: string, bytes: Uint8Array): Promise<boolean> {
    const fate = this.fates.shift() ?? 'done';
    const created = fate === 'failed' || fate === 'hangs' ? false : await this.store.create(area, name, bytes);
    if (fate.startsWith('failed')) throw new Error('storage');
    return fate.startsWith('hangs') ? new Promise(() => {}) : created;
  }

  /** Leaves of all that waits for the log, by life in the order of their numbers. */
  lives(zone = 'eu'): Map<string, (LeafDraft & Record<string, unknown>)[]> {
    const lives = new Map<string, LeafDraft[]>();
    const kept = [...this.store.area('intake')].filter(([name]) => name.startsWith(`${zone}/`));
    const all = kept.map(([, { bytes }]) => readReceived(bytes)).sort((a, b) => a.from - b.from);
    for (const { epoch, from, drafts, producer, oldest } of all) {
      expect([producer, oldest]).toEqual([`functions/${zone}`, 1]);
      const known = lives.get(epoch) ?? [];
      expect(from).toBe(known.length + 1);
      lives.set(epoch, [...known, ...drafts]);
    }
    return lives as ReturnType<Desk['lives']>;
  }
}

describe('C9 reports of the functions', () => {
  it('is durable when the call returns, in order of the life that it opens', async () => {
    const desk = new Desk();
    const first = await desk.reporter.report('eu', act(1));
    expect([...desk.lives().values()]).toMatchObject([[{ type: 'producer.open' }, { type: 'operator.act', count: 1 }]]);
    const [epoch] = desk.lives().keys();
    expect(first).toMatchObject({ ok: true, value: { producer: 'functions/eu', epoch, pseq: 2 } });
    expect(await desk.reporter.report('eu', act(2))).toMatchObject({ ok: true, value: { pseq: 3 } });
    expect([...desk.lives().values()][0]).toMatchObject([{}, { count: 1 }, { count: 2 }]);
  });

  it('a subject that is no commitment is dropped', async () => {
    const desk = new Desk();
    const read = { type: 'access.audit', tenant: 'acme', action: 'tail', count: 1, since: 1 } as const;
    await desk.reporter.report('eu', { ...read, subject: 'ann' });
    await desk.reporter.report('eu', { ...read, subject: `c1:${'a'.repeat(64)}` });
    const [, raw, committed] = [...desk.lives().values()].flat();
    const kept = [...desk.store.area('intake').values()].map(({ bytes }) => Buffer.from(bytes).toString());
    expect(kept.join()).not.toContain('ann');
    // A leaf has as many commitments with a subject as without.
    expect(Object.keys(committed?.sd ?? {})).toContain('subject');
    expect(raw?.type).toBe('access.audit');
  });

  it('concurrent reports share one write; each zone has its own life', async () => {
    const desk = new Desk();
    const counts = Array.from({ length: 50 }, (_, at) => at);
    const told = await Promise.all([
      ...counts.map((n) => desk.reporter.report('eu', act(n))),
      desk.reporter.report('us', act(1)),
    ]);
    expect(told.every(({ ok }) => ok)).toBe(true);
    const numbers = told.slice(0, 50).map((one) => one.ok && one.value.pseq);
    expect(numbers).toEqual(counts.map((n) => n + 2));
    expect([...desk.lives().values()][0]?.slice(1).map(({ count }) => count)).toEqual(counts);
    expect([...desk.lives('us').values()][0]).toHaveLength(2);
    expect(desk.store.area('intake').size).toBe(3);
  });

  it.each(['failed', 'failed but done', 'hangs', 'hangs but done'] as const)(
    'is refused when its write %s; the next life reports the last number, once',
    async (fate) => {
      const desk = new Desk();
      await desk.reporter.report('eu', act(1));
      const [before] = desk.lives().keys();
      desk.fates.push(fate);
      const asked = desk.reporter.report('eu', act(2));
      await settle();
      desk.ring();
      expect(await asked).toMatchObject({ ok: false, refusal: { reason: 'audit_unavailable' } });
      expect(await desk.reporter.report('eu', act(3))).toMatchObject({ ok: true, value: { pseq: 2 } });
      const [old, fresh] = [...desk.lives().values()];
      expect(fresh).toMatchObject([{ type: 'producer.open', previous: before, previousLast: 2 }, { count: 3 }]);
      expect(old?.map(({ count }) => count)).toEqual(fate.endsWith('done') ? [undefined, 1, 2] : [undefined, 1]);
    },
  );

  it('is refused after its deadline while another hangs, and is not written later', async () => {
    const desk = new Desk();
    desk.fates.push('hangs');
    const [first, second] = [desk.reporter.report('eu', act(1)), desk.reporter.report('eu', act(2))];
    await settle();
    desk.ring();
    expect(await Promise.all([first, second])).toMatchObject([{ ok: false }, { ok: false }]);
    await desk.reporter.report('eu', act(3));
    const counts = [...desk.lives().values()].flat().map(({ count }) => count);
    expect(counts).toEqual([undefined, 3]);
  });

  it('is refused at once when too much waits', async () => {
    const desk = new Desk();
    desk.fates.push('hangs');
    void desk.reporter.report('eu', act(0));
    const waiting = Array.from({ length: REPORTS_WAITING_MAX }, (_, n) => desk.reporter.report('eu', act(n)));
    const refused = await desk.reporter.report('eu', act(1));
    expect(refused).toMatchObject({ ok: false, refusal: { reason: 'audit_unavailable' } });
    desk.ring();
    expect((await Promise.all(waiting)).filter(({ ok }) => ok)).toEqual([]);
  });

  it('an idle or ending life closes with its last number; the next report reopens', async () => {
    const desk = new Desk();
    await desk.reporter.close(0);
    await desk.reporter.report('eu', act(1));
    await desk.reporter.close(60_000);
    expect([...desk.lives().values()][0]).toHaveLength(2);
    desk.now += 60_000;
    await desk.reporter.close(60_000);
    await desk.reporter.close(0);
    expect([...desk.lives().values()][0]?.at(-1)).toMatchObject({ type: 'producer.close', last: 3 });
    await desk.reporter.report('eu', act(2));
    const [, second] = [...desk.lives().values()];
    expect(second).toMatchObject([{ type: 'producer.open' }, { count: 2 }]);
    expect(second?.[0]).not.toHaveProperty('previous');
  });

  it('the next life repeats a lost close', async () => {
    const desk = new Desk();
    await desk.reporter.report('eu', act(1));
    const [before] = desk.lives().keys();
    desk.fates.push('failed');
    await desk.reporter.close(0);
    await desk.reporter.report('eu', act(2));
    expect([...desk.lives().values()][1]).toMatchObject([{ previous: before, previousLast: 2 }, {}]);
  });

  it.each(['failed but done', 'hangs but done'] as const)(
    'the next life reports a first write that %s',
    async (fate) => {
      const desk = new Desk();
      desk.fates.push(fate);
      const asked = desk.reporter.report('eu', act(1));
      await settle();
      desk.ring();
      expect(await asked).toMatchObject({ ok: false });
      const [before] = desk.lives().keys();
      await desk.reporter.report('eu', act(2));
      expect([...desk.lives().values()][1]).toMatchObject([{ previous: before, previousLast: 0 }, { count: 2 }]);
    },
  );

  it('a process that slept past its life’s end begins another, and reports the former', async () => {
    for (const wakes of ['report', 'close'] as const) {
      const desk = new Desk();
      await desk.reporter.report('eu', act(1));
      const [before] = desk.lives().keys();
      desk.now += PRODUCER_GONE_MS;
      if (wakes === 'close') await desk.reporter.close(0);
      await desk.reporter.report('eu', act(2));
      const [old, fresh] = [...desk.lives().values()];
      expect(old).toHaveLength(2);
      expect(fresh).toMatchObject([{ previous: before, previousLast: 2 }, { count: 2 }]);
    }
  });
});
