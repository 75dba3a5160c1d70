import { describe, expect, it } from 'vitest';
import { eraseSubject, settleErasures } from '../../../functions/audit/erase/erase.ts';
import { setHold, settleHolds } from '../../../functions/audit/erase/hold.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import { retainedUntil } from '../../../functions/audit/sidecar/retention.ts';
import { endPeriods, PERIODS_PER_ROUND_MAX } from '../../../functions/retention/end-periods.ts';
import { deskOf, failures, toldOf } from './erase-world.ts';
import { HiddenLog, ZONE } from './hidden-log.ts';

const ann = { subject: 'c1:ann' };
const ask = { tenant: 'dev', subject: 'c1:ann', basis: 'gdpr-17' };
const hold = (more: object = {}) => ({
  ...{ id: '017f22e2-79b0-4cc3-98c4-dc0c0c07398f', tenant: 'dev', subject: 'c1:ann', reason: 'case 7' },
  ...more,
});
const names = (log: HiddenLog, prefix: string) =>
  [...log.store.area('sidecar').keys()].filter((name) => name.startsWith(`${ZONE}/${prefix}`));

/** Storage that does something else before call number `at`. */
function between(store: LogStore, at: number, act: () => Promise<unknown>): LogStore & { calls: number } {
  const seen = { calls: 0 };
  const turn = async <T>(run: () => Promise<T>): Promise<T> => {
    seen.calls += 1;
    if (seen.calls - 1 === at) await act();
    return run();
  };
  return Object.assign(seen, {
    read: (area, name) => turn(() => store.read(area, name)),
    create: (area, name, bytes) => turn(() => store.create(area, name, bytes)),
    replace: (area, name, bytes, version) => turn(() => store.replace(area, name, bytes, version)),
    list: (area, prefix, limit) => turn(() => store.list(area, prefix, limit)),
    remove: (area, name) => turn(() => store.remove(area, name)),
  } satisfies LogStore);
}

describe('C12 a hold that is set while something is being destroyed', () => {
  it.each([undefined, 'c1:ann'])(
    'before each call of an erasure, of %s: a confirmed hold keeps its record',
    async (subject) => {
      let late = 0;
      for (let at = 0, calls = 1; at < calls; at += 1) {
        const log = new HiddenLog();
        await log.write(log.event(ann));
        let set: Awaited<ReturnType<typeof setHold>> | undefined;
        let there = 0;
        const store = between(log.store, at, async () => {
          set = await setHold(deskOf(log), hold({ subject }));
          there = names(log, 'subjects/').length;
        });
        await eraseSubject(deskOf(log, store), ask);
        calls = store.calls;
        if (set?.ok) expect(names(log, 'subjects/').length, `call ${at}`).toBe(there);
        else if (set) late += 1;
        // In the end it is told, and nothing waits for it for ever.
        await settleErasures(deskOf(log));
        expect(await setHold(deskOf(log), hold({ subject }))).toMatchObject({ ok: true });
      }
      expect(late).toBeGreaterThan(0);
    },
  );

  it('before each call of a month’s end: a confirmed hold keeps its record', async () => {
    let late = 0;
    for (let at = 0, calls = 1; at < calls; at += 1) {
      const log = new HiddenLog();
      log.retention = () => 'csl';
      await log.write(log.event(ann));
      log.now = retainedUntil('csl', '202606');
      let set: Awaited<ReturnType<typeof setHold>> | undefined;
      let there: string[] = [];
      const store = between(log.store, at, async () => {
        set = await setHold(deskOf(log), hold());
        there = names(log, 'periods/csl/202606');
      });
      await endPeriods(deskOf(log, store));
      calls = Math.max(calls, store.calls);
      if (set?.ok) expect(names(log, 'periods/csl/202606'), `call ${at}`).toEqual(there);
      else if (set) late += 1;
      const told = await toldOf(log, 'erasure.exec');
      expect(told.length, `call ${at}`).toBe(1 - names(log, 'periods/csl/202606').length);
      await endPeriods(deskOf(log));
      expect(names(log, 'ending/')).toEqual([]);
    }
    expect(late).toBeGreaterThan(0);
  });
});

describe('C12 a broken hold or erasure', () => {
  const broken = new Uint8Array(40);

  it('a hold or an erasure that does not decrypt keeps no other waiting', async () => {
    const log = new HiddenLog();
    await log.write(log.event(ann), log.event({ subject: 'c1:ben' }));
    await log.store.create('sidecar', `${ZONE}/holds/dev/!/1`, broken);
    await log.store.create('sidecar', `${ZONE}/erasures/dev/!`, broken);
    const unwilling = { ...deskOf(log), report: async () => ({ ok: false }) as never };
    await setHold(unwilling, hold());
    await eraseSubject(unwilling, { ...ask, subject: 'c1:ben' });
    failures.length = 0;
    await settleHolds(deskOf(log));
    expect(await toldOf(log, 'hold.set')).toHaveLength(1);
    expect(await settleErasures(deskOf(log))).toBe(1);
    expect(failures).toHaveLength(2);
  });

  it('any number of held months leaves ended months their turn', async () => {
    const log = new HiddenLog();
    await setHold(deskOf(log), hold({ subject: undefined }));
    const put = (month: string, tenant: string) =>
      log.store.create('sidecar', `${ZONE}/periods/csl/${month}/${tenant}`, new Uint8Array());
    for (let at = 0; at < PERIODS_PER_ROUND_MAX + 9; at += 1) {
      await put(`${1900 + at}12`, 'dev');
      await put(`${1901 + at}01`, 'dev');
    }
    await put('202001', 'other');
    expect(await endPeriods(deskOf(log))).toMatchObject({ destroyed: 1 });
  });
});
