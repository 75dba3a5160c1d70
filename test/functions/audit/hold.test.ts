import { describe, expect, it } from 'vitest';
import {
  HOLDS_PER_TENANT_MAX,
  listHolds,
  releaseHold,
  setHold,
  settleHolds,
} from '../../../functions/audit/erase/hold.ts';
import {
  isMonth,
  lawfulUntil,
  monthOf,
  retainedUntil,
  retentionClasses,
  retentionNames,
} from '../../../functions/audit/sidecar/retention.ts';
import { SidecarReader } from '../../../functions/audit/sidecar/sidecar.ts';
import type { SubjectPlace } from '../../../functions/audit/sidecar/sidecar-subject.ts';
import { endPeriods, PERIODS_PER_ROUND_MAX } from '../../../functions/retention/end-periods.ts';
import { readDisclosure } from '../../../shared/audit/commitment.ts';
import { faults, faultyStore } from '../../fake/faulty-log-store.ts';
import { deskOf, toldOf } from './erase-world.ts';
import { HiddenLog, SUMMER, ZONE } from './hidden-log.ts';

const DAY = 86_400_000;
const ann = { subject: 'c1:ann', audioSeconds: 1.875 };
const officer = `c1:${'0f'.repeat(32)}`;
const hold = (more: object = {}) => ({
  id: '017f22e2-79b0-4cc3-98c4-dc0c0c07398f',
  tenant: 'dev',
  subject: 'c1:ann',
  reason: 'case 7',
  by: officer,
  request: 'r9',
  ...more,
});
const id = hold().id;
const release = { reason: 'over', by: officer };
const names = (log: HiddenLog, prefix: string) =>
  [...log.store.area('sidecar').keys()].filter((name) => name.startsWith(`${ZONE}/${prefix}`));

describe('C12 holds', () => {
  it('are set, listed and released with reason and actor, and no subject’s name', async () => {
    const log = new HiddenLog();
    await log.write(log.event(ann));
    expect(await setHold(deskOf(log), hold({ basis: 'frcp-37e' }))).toMatchObject({ ok: true, value: { told: true } });
    expect(await listHolds(deskOf(log), 'dev')).toMatchObject([{ id, subject: 'c1:ann', reason: 'case 7' }]);
    expect(await listHolds(deskOf(log), 'other')).toEqual([]);
    expect(names(log, 'holds/').join()).not.toContain('ann');
    const [set] = await toldOf(log, 'hold.set');
    expect(set).toMatchObject({ hold: id, scope: 'subject', basis: 'frcp-37e', req: 'r9', tn: 'dev' });
    expect(Object.keys(set?.sd ?? {}).sort()).toEqual(['held', 'reason', 'subject']);
    expect(await releaseHold(deskOf(log), 'dev', id, release)).toMatchObject({ ok: true });
    expect(await listHolds(deskOf(log), 'dev')).toEqual([]);
    expect(await toldOf(log, 'hold.release')).toMatchObject([{ hold: id }]);
    expect(await releaseHold(deskOf(log), 'dev', id, release)).toMatchObject({ refusal: { reason: 'hold_unknown' } });
    const { entries, leaves } = log.read();
    const hidden = await new SidecarReader(log.place(), log.newKeys()).read(0, entries);
    const said = hidden[leaves.findIndex((leaf) => leaf.type === 'hold.release')];
    const values = Object.values(said as Record<string, string>).map((one) => readDisclosure(one)?.value);
    expect(values).toEqual(expect.arrayContaining(['over', officer]));
    // The log's name of the subject is unique to it.
    expect(values.join()).not.toContain('c1:ann');
  });

  it('repeated is set once; other tenants cannot release it; their number is bounded', async () => {
    const log = new HiddenLog();
    await setHold(deskOf(log), hold());
    await setHold(deskOf(log), hold({ reason: 'another' }));
    expect(await listHolds(deskOf(log), 'dev')).toMatchObject([{ reason: 'case 7' }]);
    expect(await toldOf(log, 'hold.set')).toHaveLength(1);
    expect((await releaseHold(deskOf(log), 'other', id, release)).ok).toBe(false);
    const bytes = new Uint8Array();
    for (let at = 1; at < HOLDS_PER_TENANT_MAX; at += 1) {
      await log.store.create('sidecar', `${ZONE}/holds/dev/@tenant/${at}`, bytes);
    }
    const more = await setHold(deskOf(log), hold({ id: crypto.randomUUID() }));
    expect(more).toMatchObject({ refusal: { reason: 'holds_most' } });
    expect(await setHold(deskOf(log), hold())).toMatchObject({ ok: true });
  });

  it.each(faults)('%s, at each call: two commitments of a subject are held by one act', async (fate) => {
    const both = hold({ also: ['c1:ann-elsewhere'] });
    const leaves = (log: HiddenLog, type: string) => toldOf(log, type).then((told) => told.length);
    for (let broken = -1, calls = 1; broken < calls; broken += 1) {
      const log = new HiddenLog();
      await log.write(log.event(ann), log.event({ ...ann, subject: 'c1:ann-elsewhere' }));
      const store = faultyStore(log.store, broken, fate);
      const set = await setHold(deskOf(log, store), both).catch(() => undefined);
      calls = Math.max(calls, store.calls.length);
      const what = `call ${broken}: ${store.calls[broken]}`;
      if (set?.ok) expect(names(log, 'holds/'), what).toHaveLength(2);
      await settleHolds(deskOf(log));
      // Told is what is held whole.
      expect((await leaves(log, 'hold.set')) > 0 ? 2 : 0, what).toBe(names(log, 'holds/').length);
      await setHold(deskOf(log), both);
      expect(await listHolds(deskOf(log), 'dev'), what).toMatchObject([{ id, subject: 'c1:ann' }]);
      if (broken === -1) expect(await leaves(log, 'hold.set')).toBe(1);
    }
    for (let broken = -1, calls = 1; broken < calls; broken += 1) {
      const log = new HiddenLog();
      await setHold(deskOf(log), both);
      const store = faultyStore(log.store, broken, fate);
      await releaseHold(deskOf(log, store), 'dev', id, release).catch(() => undefined);
      calls = Math.max(calls, store.calls.length);
      const what = `call ${broken}: ${store.calls[broken]}`;
      if (names(log, 'holds/').length < 2) expect(await leaves(log, 'hold.release'), what).toBeGreaterThan(0);
      await settleHolds(deskOf(log));
      await releaseHold(deskOf(log), 'dev', id, release);
      expect(names(log, 'holds/'), what).toEqual([]);
      if (broken === -1) expect(await leaves(log, 'hold.release')).toBe(1);
    }
  });

  it('a part left over from an ended act is no hold', async () => {
    const log = new HiddenLog();
    await setHold(deskOf(log), hold({ also: ['c1:ann-elsewhere'] }));
    const [main] = await namesOfAct(log);
    await log.store.remove('sidecar', main ?? '');
    expect(await listHolds(deskOf(log), 'dev')).toEqual([]);
    await settleHolds(deskOf(log));
    expect(names(log, 'holds/')).toEqual([]);
  });

  it.each(faults)('%s, at each call: it holds from before its record until the recorded release', async (fate) => {
    let calls = 2;
    for (let broken = 0; broken < calls; broken += 1) {
      const log = new HiddenLog();
      await log.write(log.event(ann));
      const store = faultyStore(log.store, broken, fate);
      const set = await setHold(deskOf(log, store), hold()).catch(() => undefined);
      if (broken === 0) calls = await callsOf();
      const what = `call ${broken}: ${store.calls[broken]}`;
      if (set?.ok) expect(names(log, 'holds/'), what).toHaveLength(1);
      await settleHolds(deskOf(log));
      expect((await toldOf(log, 'hold.set')).length > 0, what).toBe(names(log, 'holds/').length > 0);
      if (!set?.ok) expect(await setHold(deskOf(log), hold()), what).toMatchObject({ ok: true });
      expect(names(log, 'holds/'), what).toHaveLength(1);
    }
    calls = 12;
    for (let broken = 0; broken < calls; broken += 1) {
      const log = new HiddenLog();
      await setHold(deskOf(log), hold());
      await log.commit();
      const store = faultyStore(log.store, broken, fate);
      await releaseHold(deskOf(log, store), 'dev', id, release).catch(() => undefined);
      calls = Math.max(store.calls.length, 1);
      const what = `call ${broken}: ${store.calls[broken]}`;
      const gone = names(log, 'holds/').length === 0;
      if (gone) expect((await toldOf(log, 'hold.release')).length, what).toBeGreaterThan(0);
      await settleHolds(deskOf(log));
      await releaseHold(deskOf(log), 'dev', id, release);
      expect(names(log, 'holds/'), what).toEqual([]);
      expect((await toldOf(log, 'hold.release')).length, what).toBeGreaterThan(0);
    }
  });
});

/** The act first, then what goes with it. */
async function namesOfAct(log: HiddenLog): Promise<string[]> {
  const { key } = (await log.newKeys().subjects('dev', true)) as SubjectPlace;
  const tag = await key.tag('c1:ann');
  return names(log, 'holds/').sort((a, b) => Number(b.includes(tag)) - Number(a.includes(tag)));
}

async function callsOf(): Promise<number> {
  const log = new HiddenLog();
  await log.write(log.event(ann));
  const store = faultyStore(log.store, -1, 'failed');
  await setHold(deskOf(log, store), hold());
  return store.calls.length;
}

describe('C12 classes of retention', () => {
  it('say how long and why, and end with a month', () => {
    expect(retentionClasses).toMatchObject({
      hipaa: { days: 2_557 },
      'ai-act': { days: 183 },
      csl: { days: 183 },
      pci: { days: 366 },
    });
    for (const name of retentionNames) {
      const { days, atLeastDays, source } = retentionClasses[name];
      expect(atLeastDays).toBeLessThanOrEqual(days);
      expect(source.length).toBeGreaterThan(20);
      const last = Date.UTC(2026, 6, 1) - 1;
      expect(monthOf(last)).toBe('202606');
      expect(retainedUntil(name, '202606') - last).toBe(days * DAY + 1);
      expect(retainedUntil(name, '202606') - SUMMER).toBeLessThanOrEqual((days + 31) * DAY);
      expect(lawfulUntil(name, '202612')).toBe(atLeastDays === 0 ? 0 : Date.UTC(2027, 0, 1) + atLeastDays * DAY);
    }
    expect(['202600', '202613', '26', '2026x1'].filter(isMonth)).toEqual([]);
  });

  it('an ended one is destroyed in its month only; others and leaves stay', async () => {
    const log = new HiddenLog();
    log.retention = (tenant) => (tenant === 'dev' ? 'ai-act' : 'pci');
    await log.write(log.event(ann), log.event({ ...ann, tenant: 'other' }), log.event({ subject: undefined }));
    const { entries } = log.read();
    const place = log.place();
    const hidden = () => new SidecarReader(place, log.newKeys()).read(1, entries.slice(1));
    expect(JSON.parse(new TextDecoder().decode(entries[1]))).toMatchObject({ ret: 'ai-act' });
    log.now = retainedUntil('ai-act', '202606') - 1;
    expect(await endPeriods(deskOf(log))).toEqual({ destroyed: 0, held: 0 });
    expect(await hidden()).not.toContain('erased');
    log.now += 1;
    expect(await endPeriods(deskOf(log))).toEqual({ destroyed: 1, held: 0 });
    const [first, second, third] = await hidden();
    expect([first, typeof second, third]).toEqual(['erased', 'object', 'erased']);
    expect(await endPeriods(deskOf(log))).toEqual({ destroyed: 0, held: 0 });
    const told = await toldOf(log, 'erasure.exec');
    expect(told).toMatchObject([{ tn: 'dev', outcome: 'done', basis: 'ai-act 202606' }]);
  });

  it('a hold on any subject of the tenant keeps the month until release', async () => {
    const log = new HiddenLog();
    log.retention = () => 'csl';
    await log.write(log.event(ann), log.event({ ...ann, tenant: 'other' }));
    await setHold(deskOf(log), hold({ subject: 'c1:ben' }));
    log.now = retainedUntil('csl', '202606');
    expect(await endPeriods(deskOf(log))).toEqual({ destroyed: 1, held: 1 });
    expect(names(log, 'periods/csl/202606')).toEqual([`${ZONE}/periods/csl/202606/dev`]);
    await releaseHold(deskOf(log), 'dev', id, release);
    expect(await endPeriods(deskOf(log))).toEqual({ destroyed: 1, held: 0 });
  });

  it('a round ends a bounded number, the next one goes on', async () => {
    const log = new HiddenLog();
    const most = PERIODS_PER_ROUND_MAX;
    for (let at = 0; at < most + 3; at += 1) {
      await log.store.create('sidecar', `${ZONE}/periods/csl/202001/t${at}`, new Uint8Array());
    }
    expect(await endPeriods(deskOf(log))).toEqual({ destroyed: most, held: 0 });
    expect(await endPeriods(deskOf(log))).toEqual({ destroyed: 3, held: 0 });
  });

  it.each(faults)('%s, at each call: nothing is destroyed of which the log does not know', async (fate) => {
    for (let broken = 0, calls = 1; broken < calls; broken += 1) {
      const log = new HiddenLog();
      log.retention = () => 'csl';
      await log.write(log.event(ann), log.event({ ...ann, tenant: 'other' }));
      log.now = retainedUntil('csl', '202606');
      const store = faultyStore(log.store, broken, fate);
      await endPeriods(deskOf(log, store)).catch(() => undefined);
      calls = Math.max(calls, store.calls.length);
      const check = async () => {
        const told = new Set((await toldOf(log, 'erasure.exec')).map((leaf) => leaf.tn));
        const left = names(log, 'periods/csl/202606').length;
        expect(left + told.size, `call ${broken}: ${store.calls[broken]}`).toBeGreaterThanOrEqual(2);
        return left;
      };
      await check();
      await endPeriods(deskOf(log));
      expect(await check()).toBe(0);
    }
  });
});
